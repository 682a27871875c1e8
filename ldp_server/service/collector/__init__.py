"""The methods that apps call, and the way of a batch to the disk and back.

handlers   fetch collections, submit batches
ingest     from a request to a ticket
unsealing  from a batch of sealed reports to a batch of reports
volunteering  sealed records of volunteers
issuer_keys   the keys of unlinkable tokens
waiting    what is received and not yet durable, with the counters of the collections
"""

from ldp_server.service.collector.handlers import Collector
from ldp_server.service.collector.ingest import Ingest
from ldp_server.service.collector.unsealing import Unsealing
from ldp_server.service.collector.waiting import Waiting

__all__ = ["Collector", "Ingest", "Unsealing", "Waiting"]

"""The methods that apps call, and the way of a batch to the disk and back.

handlers   fetch collections, submit batches
ingest     from a request to a ticket
waiting    what is received and not yet durable, with the counters of the collections
"""

from ldp_server.service.collector.handlers import Collector
from ldp_server.service.collector.ingest import Ingest
from ldp_server.service.collector.waiting import Waiting

__all__ = ["Collector", "Ingest", "Waiting"]

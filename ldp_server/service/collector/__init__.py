"""The methods that apps call, and the way of a batch to the disk and back.

handlers   fetch collections, submit one batch
stream     many batches on one call
ingest     from a request to a ticket, and from a ticket to an answer
unsealing  from a batch of sealed reports to a batch of reports
waiting    what is received and not yet durable: how much, and when there is room
"""

from ldp_server.service.collector.handlers import Collector
from ldp_server.service.collector.ingest import Ingest
from ldp_server.service.collector.stream import StreamLimits
from ldp_server.service.collector.unsealing import Unsealing
from ldp_server.service.collector.waiting import Waiting

__all__ = ["Collector", "Ingest", "StreamLimits", "Unsealing", "Waiting"]

"""The methods that apps call, and the way of a batch to the disk and back.

handlers   fetch collections, submit one batch
stream     many batches on one call
ingest     from a request to a ticket, and from a ticket to an answer
waiting    what is received and not yet durable: how much, and when there is room
"""

from ldp_server.service.collector.handlers import Collector
from ldp_server.service.collector.ingest import Ingest
from ldp_server.service.collector.stream import StreamLimits
from ldp_server.service.collector.waiting import Waiting

__all__ = ["Collector", "Ingest", "StreamLimits", "Waiting"]

"""Real gRPC servers for the client's tests: an honest collector in memory, and ones that lie in every way we know."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from ldp_client.protocol.v1 import collector_pb2, collector_pb2_grpc
from ldp_client.trust.signed_list import ID_BYTES, PART_IDS


class HonestCollector(collector_pb2_grpc.CollectorServicer):
    """Counts every batch once, refuses conflicts, remembers every request as it came."""

    def __init__(self, collections=()):
        self.specs = {collection.id: collection.spec_bytes for collection in collections}
        self.requests = []
        self.counted = {}
        self.lock = threading.Lock()
        self.listed = b""
        self.signed = None
        self.fail = None  # (code, retry seconds): asked before each answer
        self.slow = 0.0

    def take(self, request, context):
        with self.lock:
            self.requests.append(request)
            time.sleep(self.slow)
            if self.fail is not None:
                code, wait = self.fail
                if wait is not None:
                    detail = any_pb2.Any()
                    seconds = duration_pb2.Duration()
                    seconds.FromNanoseconds(int(wait * 1e9))
                    detail.Pack(error_details_pb2.RetryInfo(retry_delay=seconds))
                    status = status_pb2.Status(code=code.value[0], message="not now", details=[detail])
                    context.abort_with_status(rpc_status.to_status(status))
                context.abort(code, "not now")
            known = self.counted.setdefault(request.batch_id, request)
        answer = collector_pb2.SubmitResponse(batch_id=request.batch_id)
        if (known.payload, known.collection_id) != (request.payload, request.collection_id):
            answer.refusal.reason = collector_pb2.BATCH_ID_CONFLICT
        elif self.specs and request.collection_id not in self.specs:
            answer.refusal.reason = collector_pb2.UNKNOWN_COLLECTION
        else:
            answer.accepted.reports = 1
            answer.accepted.duplicate = known is not request
        return answer

    def Submit(self, request, context):
        return self.take(request, context)

    def SubmitStream(self, requests, context):
        for request in requests:
            yield self.take(request, context)

    def GetCollection(self, request, context):
        spec = self.specs.get(request.collection_id)
        if spec is None:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such collection here")
        return collector_pb2.GetCollectionResponse(spec_bytes=spec)

    def ListCollections(self, request, context):
        size = PART_IDS * ID_BYTES
        ids = self.listed[request.part * size : (request.part + 1) * size]
        return collector_pb2.ListCollectionsResponse(ids=ids, signed_list=self.signed)

    def publish(self, operator, collections):
        """Let an operator sign a list of collections, or of raw ids."""
        self.listed, self.signed = operator.sign(collections).ids, operator.signed_list(collections)

    def payloads(self, collection):
        return [r.payload for r in self.counted.values() if r.collection_id == collection.id]


@contextmanager
def serving(servicer, port=0, credentials=None, raw=()):
    """Run a collector; yields its port."""
    server = grpc.server(ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
    collector_pb2_grpc.add_CollectorServicer_to_server(servicer, server)
    if raw:
        server.add_registered_method_handlers("ldp.v1.Collector", dict(raw))
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("ldp.v1.Collector", dict(raw)),))
    address = f"127.0.0.1:{port}"
    bound = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
    server.start()
    try:
        yield bound
    finally:
        server.stop(0).wait()

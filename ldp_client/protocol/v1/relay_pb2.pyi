from ldp_client.protocol.v1 import collector_pb2 as _collector_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class PromiseRequest(_message.Message):
    __slots__ = ("collection_id",)
    COLLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    collection_id: bytes
    def __init__(self, collection_id: _Optional[bytes] = ...) -> None: ...

class PromiseResponse(_message.Message):
    __slots__ = ("collection_id", "smallest_batch", "period_seconds", "operator", "rule")
    COLLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    SMALLEST_BATCH_FIELD_NUMBER: _ClassVar[int]
    PERIOD_SECONDS_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    collection_id: bytes
    smallest_batch: int
    period_seconds: int
    operator: str
    rule: str
    def __init__(self, collection_id: _Optional[bytes] = ..., smallest_batch: _Optional[int] = ..., period_seconds: _Optional[int] = ..., operator: _Optional[str] = ..., rule: _Optional[str] = ...) -> None: ...

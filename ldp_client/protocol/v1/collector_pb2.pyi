from google.protobuf import any_pb2 as _any_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REASON_UNSPECIFIED: _ClassVar[Reason]
    UNKNOWN_COLLECTION: _ClassVar[Reason]
    NOT_YET_OPEN: _ClassVar[Reason]
    WINDOW_CLOSED: _ClassVar[Reason]
    COLLECTION_CLOSED: _ClassVar[Reason]
    COLLECTION_DELETED: _ClassVar[Reason]
    BAD_COLLECTION_ID: _ClassVar[Reason]
    BAD_BATCH_ID: _ClassVar[Reason]
    EMPTY_BATCH: _ClassVar[Reason]
    BATCH_TOO_LARGE: _ClassVar[Reason]
    WRONG_LENGTH: _ClassVar[Reason]
    REPORT_OUT_OF_RANGE: _ClassVar[Reason]
    BATCH_ID_CONFLICT: _ClassVar[Reason]
    NOT_ADMITTED: _ClassVar[Reason]
    TOKEN_USED: _ClassVar[Reason]
    BAD_STATE: _ClassVar[Reason]
    WRONG_PERIOD: _ClassVar[Reason]
    PERIOD_NOT_BEGUN: _ClassVar[Reason]
    PERIOD_OVER: _ClassVar[Reason]
    UNKNOWN_SEALING_KEY: _ClassVar[Reason]
    SEAL_EXPIRED: _ClassVar[Reason]
    NOT_SEALED: _ClassVar[Reason]
    SEALED_WRONG_LENGTH: _ClassVar[Reason]
    BAD_SEAL: _ClassVar[Reason]
    TOKEN_FOR_ANOTHER: _ClassVar[Reason]
REASON_UNSPECIFIED: Reason
UNKNOWN_COLLECTION: Reason
NOT_YET_OPEN: Reason
WINDOW_CLOSED: Reason
COLLECTION_CLOSED: Reason
COLLECTION_DELETED: Reason
BAD_COLLECTION_ID: Reason
BAD_BATCH_ID: Reason
EMPTY_BATCH: Reason
BATCH_TOO_LARGE: Reason
WRONG_LENGTH: Reason
REPORT_OUT_OF_RANGE: Reason
BATCH_ID_CONFLICT: Reason
NOT_ADMITTED: Reason
TOKEN_USED: Reason
BAD_STATE: Reason
WRONG_PERIOD: Reason
PERIOD_NOT_BEGUN: Reason
PERIOD_OVER: Reason
UNKNOWN_SEALING_KEY: Reason
SEAL_EXPIRED: Reason
NOT_SEALED: Reason
SEALED_WRONG_LENGTH: Reason
BAD_SEAL: Reason
TOKEN_FOR_ANOTHER: Reason

class GetCollectionRequest(_message.Message):
    __slots__ = ("collection_id",)
    COLLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    collection_id: bytes
    def __init__(self, collection_id: _Optional[bytes] = ...) -> None: ...

class GetCollectionResponse(_message.Message):
    __slots__ = ("spec_bytes",)
    SPEC_BYTES_FIELD_NUMBER: _ClassVar[int]
    spec_bytes: bytes
    def __init__(self, spec_bytes: _Optional[bytes] = ...) -> None: ...

class ListCollectionsRequest(_message.Message):
    __slots__ = ("part",)
    PART_FIELD_NUMBER: _ClassVar[int]
    part: int
    def __init__(self, part: _Optional[int] = ...) -> None: ...

class ListCollectionsResponse(_message.Message):
    __slots__ = ("ids", "signed_list", "cosignatures")
    IDS_FIELD_NUMBER: _ClassVar[int]
    SIGNED_LIST_FIELD_NUMBER: _ClassVar[int]
    COSIGNATURES_FIELD_NUMBER: _ClassVar[int]
    ids: bytes
    signed_list: SignedList
    cosignatures: _containers.RepeatedCompositeFieldContainer[Cosignature]
    def __init__(self, ids: _Optional[bytes] = ..., signed_list: _Optional[_Union[SignedList, _Mapping]] = ..., cosignatures: _Optional[_Iterable[_Union[Cosignature, _Mapping]]] = ...) -> None: ...

class ProveListRequest(_message.Message):
    __slots__ = ("size", "collection_id")
    SIZE_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    size: int
    collection_id: bytes
    def __init__(self, size: _Optional[int] = ..., collection_id: _Optional[bytes] = ...) -> None: ...

class ProveListResponse(_message.Message):
    __slots__ = ("signed_list", "consistency", "index", "inclusion", "cosignatures")
    SIGNED_LIST_FIELD_NUMBER: _ClassVar[int]
    CONSISTENCY_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    INCLUSION_FIELD_NUMBER: _ClassVar[int]
    COSIGNATURES_FIELD_NUMBER: _ClassVar[int]
    signed_list: SignedList
    consistency: _containers.RepeatedScalarFieldContainer[bytes]
    index: int
    inclusion: _containers.RepeatedScalarFieldContainer[bytes]
    cosignatures: _containers.RepeatedCompositeFieldContainer[Cosignature]
    def __init__(self, signed_list: _Optional[_Union[SignedList, _Mapping]] = ..., consistency: _Optional[_Iterable[bytes]] = ..., index: _Optional[int] = ..., inclusion: _Optional[_Iterable[bytes]] = ..., cosignatures: _Optional[_Iterable[_Union[Cosignature, _Mapping]]] = ...) -> None: ...

class Cosignature(_message.Message):
    __slots__ = ("public_key", "signature")
    PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    public_key: bytes
    signature: bytes
    def __init__(self, public_key: _Optional[bytes] = ..., signature: _Optional[bytes] = ...) -> None: ...

class CosignRequest(_message.Message):
    __slots__ = ("list_digest", "cosignature")
    LIST_DIGEST_FIELD_NUMBER: _ClassVar[int]
    COSIGNATURE_FIELD_NUMBER: _ClassVar[int]
    list_digest: bytes
    cosignature: Cosignature
    def __init__(self, list_digest: _Optional[bytes] = ..., cosignature: _Optional[_Union[Cosignature, _Mapping]] = ...) -> None: ...

class CosignResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SignedListBody(_message.Message):
    __slots__ = ("serial", "head", "next_key", "collector_keys", "root")
    SERIAL_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    NEXT_KEY_FIELD_NUMBER: _ClassVar[int]
    COLLECTOR_KEYS_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    serial: int
    head: bytes
    next_key: bytes
    collector_keys: _containers.RepeatedCompositeFieldContainer[CollectorKey]
    root: bytes
    def __init__(self, serial: _Optional[int] = ..., head: _Optional[bytes] = ..., next_key: _Optional[bytes] = ..., collector_keys: _Optional[_Iterable[_Union[CollectorKey, _Mapping]]] = ..., root: _Optional[bytes] = ...) -> None: ...

class CollectorKey(_message.Message):
    __slots__ = ("public_key", "not_after")
    PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    NOT_AFTER_FIELD_NUMBER: _ClassVar[int]
    public_key: bytes
    not_after: int
    def __init__(self, public_key: _Optional[bytes] = ..., not_after: _Optional[int] = ...) -> None: ...

class SignedList(_message.Message):
    __slots__ = ("list_bytes", "signature", "public_key")
    LIST_BYTES_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
    list_bytes: bytes
    signature: bytes
    public_key: bytes
    def __init__(self, list_bytes: _Optional[bytes] = ..., signature: _Optional[bytes] = ..., public_key: _Optional[bytes] = ...) -> None: ...

class SubmitRequest(_message.Message):
    __slots__ = ("collection_id", "batch_id", "payload", "admission_token", "period")
    COLLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    BATCH_ID_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    ADMISSION_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    collection_id: bytes
    batch_id: bytes
    payload: bytes
    admission_token: bytes
    period: int
    def __init__(self, collection_id: _Optional[bytes] = ..., batch_id: _Optional[bytes] = ..., payload: _Optional[bytes] = ..., admission_token: _Optional[bytes] = ..., period: _Optional[int] = ...) -> None: ...

class SubmitResponse(_message.Message):
    __slots__ = ("batch_id", "accepted", "refusal")
    BATCH_ID_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    batch_id: bytes
    accepted: Accepted
    refusal: Refusal
    def __init__(self, batch_id: _Optional[bytes] = ..., accepted: _Optional[_Union[Accepted, _Mapping]] = ..., refusal: _Optional[_Union[Refusal, _Mapping]] = ...) -> None: ...

class Accepted(_message.Message):
    __slots__ = ("reports", "duplicate", "dropped")
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    reports: int
    duplicate: bool
    dropped: int
    def __init__(self, reports: _Optional[int] = ..., duplicate: bool = ..., dropped: _Optional[int] = ...) -> None: ...

class Refusal(_message.Message):
    __slots__ = ("reason", "detail")
    REASON_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    reason: Reason
    detail: str
    def __init__(self, reason: _Optional[_Union[Reason, str]] = ..., detail: _Optional[str] = ...) -> None: ...

class StatusDetails(_message.Message):
    __slots__ = ("details",)
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    details: _containers.RepeatedCompositeFieldContainer[_any_pb2.Any]
    def __init__(self, details: _Optional[_Iterable[_Union[_any_pb2.Any, _Mapping]]] = ...) -> None: ...

class RetryDelay(_message.Message):
    __slots__ = ("retry_delay",)
    RETRY_DELAY_FIELD_NUMBER: _ClassVar[int]
    retry_delay: _duration_pb2.Duration
    def __init__(self, retry_delay: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

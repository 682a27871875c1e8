from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class IssueRequest(_message.Message):
    __slots__ = ("account", "token_requests")
    ACCOUNT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    account: str
    token_requests: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, account: _Optional[str] = ..., token_requests: _Optional[_Iterable[bytes]] = ...) -> None: ...

class IssueResponse(_message.Message):
    __slots__ = ("blind_signatures",)
    BLIND_SIGNATURES_FIELD_NUMBER: _ClassVar[int]
    blind_signatures: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, blind_signatures: _Optional[_Iterable[bytes]] = ...) -> None: ...

class GetIssuerKeysRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetIssuerKeysResponse(_message.Message):
    __slots__ = ("keys",)
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, keys: _Optional[_Iterable[bytes]] = ...) -> None: ...

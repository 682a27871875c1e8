from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GiveOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GIVE_OUTCOME_UNSPECIFIED: _ClassVar[GiveOutcome]
    GIVEN: _ClassVar[GiveOutcome]
    NO_SUCH_COLLECTION: _ClassVar[GiveOutcome]
    NO_VOLUNTEERS: _ClassVar[GiveOutcome]
    QUESTION_OVER: _ClassVar[GiveOutcome]
    MALFORMED_RECORD: _ClassVar[GiveOutcome]
    OTHER_RECORD: _ClassVar[GiveOutcome]

class WithdrawOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WITHDRAW_OUTCOME_UNSPECIFIED: _ClassVar[WithdrawOutcome]
    WITHDRAWN: _ClassVar[WithdrawOutcome]
    USED: _ClassVar[WithdrawOutcome]
GIVE_OUTCOME_UNSPECIFIED: GiveOutcome
GIVEN: GiveOutcome
NO_SUCH_COLLECTION: GiveOutcome
NO_VOLUNTEERS: GiveOutcome
QUESTION_OVER: GiveOutcome
MALFORMED_RECORD: GiveOutcome
OTHER_RECORD: GiveOutcome
WITHDRAW_OUTCOME_UNSPECIFIED: WithdrawOutcome
WITHDRAWN: WithdrawOutcome
USED: WithdrawOutcome

class GiveRequest(_message.Message):
    __slots__ = ("collection_id", "name", "sealed")
    COLLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SEALED_FIELD_NUMBER: _ClassVar[int]
    collection_id: bytes
    name: bytes
    sealed: bytes
    def __init__(self, collection_id: _Optional[bytes] = ..., name: _Optional[bytes] = ..., sealed: _Optional[bytes] = ...) -> None: ...

class GiveResponse(_message.Message):
    __slots__ = ("outcome",)
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    outcome: GiveOutcome
    def __init__(self, outcome: _Optional[_Union[GiveOutcome, str]] = ...) -> None: ...

class WithdrawRequest(_message.Message):
    __slots__ = ("collection_id", "secret")
    COLLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    collection_id: bytes
    secret: bytes
    def __init__(self, collection_id: _Optional[bytes] = ..., secret: _Optional[bytes] = ...) -> None: ...

class WithdrawResponse(_message.Message):
    __slots__ = ("outcome",)
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    outcome: WithdrawOutcome
    def __init__(self, outcome: _Optional[_Union[WithdrawOutcome, str]] = ...) -> None: ...

from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AdmissionKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ADMISSION_UNSPECIFIED: _ClassVar[AdmissionKind]
    OPEN: _ClassVar[AdmissionKind]
    CERTIFICATE: _ClassVar[AdmissionKind]
    LINKABLE_TOKEN: _ClassVar[AdmissionKind]
    UNLINKABLE_TOKEN: _ClassVar[AdmissionKind]

class CollectionState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COLLECTION_STATE_UNSPECIFIED: _ClassVar[CollectionState]
    UPCOMING: _ClassVar[CollectionState]
    RUNNING: _ClassVar[CollectionState]
    ENDED: _ClassVar[CollectionState]
    CLOSED: _ClassVar[CollectionState]
    COMPACTED: _ClassVar[CollectionState]
    DELETED: _ClassVar[CollectionState]

class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERDICT_UNSPECIFIED: _ClassVar[Verdict]
    YES: _ClassVar[Verdict]
    NO: _ClassVar[Verdict]
    CANNOT_TELL: _ClassVar[Verdict]

class Beginning(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BEGINNING_UNSPECIFIED: _ClassVar[Beginning]
    BLANK: _ClassVar[Beginning]
    LAST: _ClassVar[Beginning]

class DictionarySource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DICTIONARY_UNSPECIFIED: _ClassVar[DictionarySource]
    NO_DICTIONARY: _ClassVar[DictionarySource]
    EARLIER_LIST: _ClassVar[DictionarySource]

class Copies(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COPIES_UNSPECIFIED: _ClassVar[Copies]
    WEIGHED: _ClassVar[Copies]
    ONCE: _ClassVar[Copies]

class ExportKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXPORT_UNSPECIFIED: _ClassVar[ExportKind]
    COUNTS: _ClassVar[ExportKind]
    REPORTS: _ClassVar[ExportKind]
ADMISSION_UNSPECIFIED: AdmissionKind
OPEN: AdmissionKind
CERTIFICATE: AdmissionKind
LINKABLE_TOKEN: AdmissionKind
UNLINKABLE_TOKEN: AdmissionKind
COLLECTION_STATE_UNSPECIFIED: CollectionState
UPCOMING: CollectionState
RUNNING: CollectionState
ENDED: CollectionState
CLOSED: CollectionState
COMPACTED: CollectionState
DELETED: CollectionState
VERDICT_UNSPECIFIED: Verdict
YES: Verdict
NO: Verdict
CANNOT_TELL: Verdict
BEGINNING_UNSPECIFIED: Beginning
BLANK: Beginning
LAST: Beginning
DICTIONARY_UNSPECIFIED: DictionarySource
NO_DICTIONARY: DictionarySource
EARLIER_LIST: DictionarySource
COPIES_UNSPECIFIED: Copies
WEIGHED: Copies
ONCE: Copies
EXPORT_UNSPECIFIED: ExportKind
COUNTS: ExportKind
REPORTS: ExportKind

class CollectionRequest(_message.Message):
    __slots__ = ("collection_id", "id_prefix")
    COLLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    ID_PREFIX_FIELD_NUMBER: _ClassVar[int]
    collection_id: bytes
    id_prefix: str
    def __init__(self, collection_id: _Optional[bytes] = ..., id_prefix: _Optional[str] = ...) -> None: ...

class CreateCollectionRequest(_message.Message):
    __slots__ = ("spec_bytes", "admission", "reports_per_token", "unlisted")
    SPEC_BYTES_FIELD_NUMBER: _ClassVar[int]
    ADMISSION_FIELD_NUMBER: _ClassVar[int]
    REPORTS_PER_TOKEN_FIELD_NUMBER: _ClassVar[int]
    UNLISTED_FIELD_NUMBER: _ClassVar[int]
    spec_bytes: bytes
    admission: AdmissionKind
    reports_per_token: int
    unlisted: bool
    def __init__(self, spec_bytes: _Optional[bytes] = ..., admission: _Optional[_Union[AdmissionKind, str]] = ..., reports_per_token: _Optional[int] = ..., unlisted: bool = ...) -> None: ...

class AskedPeriods(_message.Message):
    __slots__ = ("first", "last", "moments")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    MOMENTS_FIELD_NUMBER: _ClassVar[int]
    first: int
    last: int
    moments: bool
    def __init__(self, first: _Optional[int] = ..., last: _Optional[int] = ..., moments: bool = ...) -> None: ...

class PeriodSpan(_message.Message):
    __slots__ = ("first", "last", "begins", "ends")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    BEGINS_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    first: int
    last: int
    begins: int
    ends: int
    def __init__(self, first: _Optional[int] = ..., last: _Optional[int] = ..., begins: _Optional[int] = ..., ends: _Optional[int] = ...) -> None: ...

class ListPeriodsRequest(_message.Message):
    __slots__ = ("collection_id", "id_prefix", "periods")
    COLLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    ID_PREFIX_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    collection_id: bytes
    id_prefix: str
    periods: AskedPeriods
    def __init__(self, collection_id: _Optional[bytes] = ..., id_prefix: _Optional[str] = ..., periods: _Optional[_Union[AskedPeriods, _Mapping]] = ...) -> None: ...

class ListPeriodsResponse(_message.Message):
    __slots__ = ("periods", "collection")
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    periods: _containers.RepeatedCompositeFieldContainer[PeriodInfo]
    collection: CollectionInfo
    def __init__(self, periods: _Optional[_Iterable[_Union[PeriodInfo, _Mapping]]] = ..., collection: _Optional[_Union[CollectionInfo, _Mapping]] = ...) -> None: ...

class PeriodInfo(_message.Message):
    __slots__ = ("period", "begins", "ends", "reports", "batches", "state")
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    BEGINS_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    period: int
    begins: int
    ends: int
    reports: int
    batches: int
    state: str
    def __init__(self, period: _Optional[int] = ..., begins: _Optional[int] = ..., ends: _Optional[int] = ..., reports: _Optional[int] = ..., batches: _Optional[int] = ..., state: _Optional[str] = ...) -> None: ...

class CollectionInfo(_message.Message):
    __slots__ = ("collection_id", "spec_bytes", "state", "admission", "reports_per_token", "unlisted", "created", "closed", "deleted", "statement", "reports_per_day", "rate_seconds")
    COLLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    SPEC_BYTES_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ADMISSION_FIELD_NUMBER: _ClassVar[int]
    REPORTS_PER_TOKEN_FIELD_NUMBER: _ClassVar[int]
    UNLISTED_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    REPORTS_PER_DAY_FIELD_NUMBER: _ClassVar[int]
    RATE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    collection_id: bytes
    spec_bytes: bytes
    state: CollectionState
    admission: AdmissionKind
    reports_per_token: int
    unlisted: bool
    created: int
    closed: int
    deleted: int
    statement: _containers.RepeatedScalarFieldContainer[str]
    reports_per_day: float
    rate_seconds: int
    def __init__(self, collection_id: _Optional[bytes] = ..., spec_bytes: _Optional[bytes] = ..., state: _Optional[_Union[CollectionState, str]] = ..., admission: _Optional[_Union[AdmissionKind, str]] = ..., reports_per_token: _Optional[int] = ..., unlisted: bool = ..., created: _Optional[int] = ..., closed: _Optional[int] = ..., deleted: _Optional[int] = ..., statement: _Optional[_Iterable[str]] = ..., reports_per_day: _Optional[float] = ..., rate_seconds: _Optional[int] = ...) -> None: ...

class ListAllCollectionsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListAllCollectionsResponse(_message.Message):
    __slots__ = ("collections",)
    COLLECTIONS_FIELD_NUMBER: _ClassVar[int]
    collections: _containers.RepeatedCompositeFieldContainer[CollectionInfo]
    def __init__(self, collections: _Optional[_Iterable[_Union[CollectionInfo, _Mapping]]] = ...) -> None: ...

class ShowCollectionRequest(_message.Message):
    __slots__ = ("collection_id", "id_prefix")
    COLLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    ID_PREFIX_FIELD_NUMBER: _ClassVar[int]
    collection_id: bytes
    id_prefix: str
    def __init__(self, collection_id: _Optional[bytes] = ..., id_prefix: _Optional[str] = ...) -> None: ...

class CollectionSummary(_message.Message):
    __slots__ = ("info", "reports", "batches", "stored_bytes", "statement", "standard_error", "lists_domain", "decodes_heavy_hitters")
    INFO_FIELD_NUMBER: _ClassVar[int]
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    STATEMENT_FIELD_NUMBER: _ClassVar[int]
    STANDARD_ERROR_FIELD_NUMBER: _ClassVar[int]
    LISTS_DOMAIN_FIELD_NUMBER: _ClassVar[int]
    DECODES_HEAVY_HITTERS_FIELD_NUMBER: _ClassVar[int]
    info: CollectionInfo
    reports: int
    batches: int
    stored_bytes: int
    statement: _containers.RepeatedScalarFieldContainer[str]
    standard_error: float
    lists_domain: bool
    decodes_heavy_hitters: bool
    def __init__(self, info: _Optional[_Union[CollectionInfo, _Mapping]] = ..., reports: _Optional[int] = ..., batches: _Optional[int] = ..., stored_bytes: _Optional[int] = ..., statement: _Optional[_Iterable[str]] = ..., standard_error: _Optional[float] = ..., lists_domain: bool = ..., decodes_heavy_hitters: bool = ...) -> None: ...

class Item(_message.Message):
    __slots__ = ("text", "raw", "integer", "none", "attributes", "record")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    RAW_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    NONE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    text: str
    raw: bytes
    integer: str
    none: bool
    attributes: AttributeSet
    record: RecordItem
    def __init__(self, text: _Optional[str] = ..., raw: _Optional[bytes] = ..., integer: _Optional[str] = ..., none: bool = ..., attributes: _Optional[_Union[AttributeSet, _Mapping]] = ..., record: _Optional[_Union[RecordItem, _Mapping]] = ...) -> None: ...

class RecordItem(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedCompositeFieldContainer[FieldValue]
    def __init__(self, values: _Optional[_Iterable[_Union[FieldValue, _Mapping]]] = ...) -> None: ...

class FieldValue(_message.Message):
    __slots__ = ("name", "text", "integer", "yes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    YES_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    integer: str
    yes: bool
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ..., integer: _Optional[str] = ..., yes: bool = ...) -> None: ...

class AttributeSet(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class GivenItems(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Item]
    def __init__(self, items: _Optional[_Iterable[_Union[Item, _Mapping]]] = ...) -> None: ...

class AllItems(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TopItems(_message.Message):
    __slots__ = ("count",)
    COUNT_FIELD_NUMBER: _ClassVar[int]
    count: int
    def __init__(self, count: _Optional[int] = ...) -> None: ...

class EstimateRequest(_message.Message):
    __slots__ = ("collection_id", "given", "all", "top", "confidence", "threshold", "together", "id_prefix", "periods", "every_look", "fields", "where", "conditions")
    COLLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    GIVEN_FIELD_NUMBER: _ClassVar[int]
    ALL_FIELD_NUMBER: _ClassVar[int]
    TOP_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    TOGETHER_FIELD_NUMBER: _ClassVar[int]
    ID_PREFIX_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    EVERY_LOOK_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    collection_id: bytes
    given: GivenItems
    all: AllItems
    top: TopItems
    confidence: float
    threshold: float
    together: bool
    id_prefix: str
    periods: AskedPeriods
    every_look: bool
    fields: _containers.RepeatedScalarFieldContainer[str]
    where: _containers.RepeatedCompositeFieldContainer[Slice]
    conditions: _containers.RepeatedCompositeFieldContainer[Condition]
    def __init__(self, collection_id: _Optional[bytes] = ..., given: _Optional[_Union[GivenItems, _Mapping]] = ..., all: _Optional[_Union[AllItems, _Mapping]] = ..., top: _Optional[_Union[TopItems, _Mapping]] = ..., confidence: _Optional[float] = ..., threshold: _Optional[float] = ..., together: bool = ..., id_prefix: _Optional[str] = ..., periods: _Optional[_Union[AskedPeriods, _Mapping]] = ..., every_look: bool = ..., fields: _Optional[_Iterable[str]] = ..., where: _Optional[_Iterable[_Union[Slice, _Mapping]]] = ..., conditions: _Optional[_Iterable[_Union[Condition, _Mapping]]] = ...) -> None: ...

class Condition(_message.Message):
    __slots__ = ("name", "where", "otherwise")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    OTHERWISE_FIELD_NUMBER: _ClassVar[int]
    name: str
    where: _containers.RepeatedCompositeFieldContainer[Slice]
    otherwise: bool
    def __init__(self, name: _Optional[str] = ..., where: _Optional[_Iterable[_Union[Slice, _Mapping]]] = ..., otherwise: bool = ...) -> None: ...

class Slice(_message.Message):
    __slots__ = ("field", "items")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    field: str
    items: _containers.RepeatedCompositeFieldContainer[Item]
    def __init__(self, field: _Optional[str] = ..., items: _Optional[_Iterable[_Union[Item, _Mapping]]] = ...) -> None: ...

class EstimateResponse(_message.Message):
    __slots__ = ("reports", "items", "estimates", "standard_errors", "lows", "highs", "consistent", "verdicts", "confidence", "coverage", "everything_else", "collection", "periods", "every_look", "more_for_half", "independence", "fields", "where", "sets")
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    ESTIMATES_FIELD_NUMBER: _ClassVar[int]
    STANDARD_ERRORS_FIELD_NUMBER: _ClassVar[int]
    LOWS_FIELD_NUMBER: _ClassVar[int]
    HIGHS_FIELD_NUMBER: _ClassVar[int]
    CONSISTENT_FIELD_NUMBER: _ClassVar[int]
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_FIELD_NUMBER: _ClassVar[int]
    EVERYTHING_ELSE_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    EVERY_LOOK_FIELD_NUMBER: _ClassVar[int]
    MORE_FOR_HALF_FIELD_NUMBER: _ClassVar[int]
    INDEPENDENCE_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    SETS_FIELD_NUMBER: _ClassVar[int]
    reports: int
    items: _containers.RepeatedCompositeFieldContainer[Item]
    estimates: _containers.RepeatedScalarFieldContainer[float]
    standard_errors: _containers.RepeatedScalarFieldContainer[float]
    lows: _containers.RepeatedScalarFieldContainer[float]
    highs: _containers.RepeatedScalarFieldContainer[float]
    consistent: _containers.RepeatedScalarFieldContainer[float]
    verdicts: _containers.RepeatedScalarFieldContainer[Verdict]
    confidence: float
    coverage: str
    everything_else: Rest
    collection: CollectionInfo
    periods: PeriodSpan
    every_look: bool
    more_for_half: int
    independence: Independence
    fields: _containers.RepeatedScalarFieldContainer[str]
    where: _containers.RepeatedScalarFieldContainer[str]
    sets: SetSizes
    def __init__(self, reports: _Optional[int] = ..., items: _Optional[_Iterable[_Union[Item, _Mapping]]] = ..., estimates: _Optional[_Iterable[float]] = ..., standard_errors: _Optional[_Iterable[float]] = ..., lows: _Optional[_Iterable[float]] = ..., highs: _Optional[_Iterable[float]] = ..., consistent: _Optional[_Iterable[float]] = ..., verdicts: _Optional[_Iterable[_Union[Verdict, str]]] = ..., confidence: _Optional[float] = ..., coverage: _Optional[str] = ..., everything_else: _Optional[_Union[Rest, _Mapping]] = ..., collection: _Optional[_Union[CollectionInfo, _Mapping]] = ..., periods: _Optional[_Union[PeriodSpan, _Mapping]] = ..., every_look: bool = ..., more_for_half: _Optional[int] = ..., independence: _Optional[_Union[Independence, _Mapping]] = ..., fields: _Optional[_Iterable[str]] = ..., where: _Optional[_Iterable[str]] = ..., sets: _Optional[_Union[SetSizes, _Mapping]] = ...) -> None: ...

class SetSizes(_message.Message):
    __slots__ = ("most", "at_most", "cut", "average", "average_low", "average_high")
    MOST_FIELD_NUMBER: _ClassVar[int]
    AT_MOST_FIELD_NUMBER: _ClassVar[int]
    CUT_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_LOW_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_HIGH_FIELD_NUMBER: _ClassVar[int]
    most: int
    at_most: _containers.RepeatedCompositeFieldContainer[SizeCount]
    cut: SizeCount
    average: float
    average_low: float
    average_high: float
    def __init__(self, most: _Optional[int] = ..., at_most: _Optional[_Iterable[_Union[SizeCount, _Mapping]]] = ..., cut: _Optional[_Union[SizeCount, _Mapping]] = ..., average: _Optional[float] = ..., average_low: _Optional[float] = ..., average_high: _Optional[float] = ...) -> None: ...

class SizeCount(_message.Message):
    __slots__ = ("items", "estimate", "standard_error", "low", "high")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    STANDARD_ERROR_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    items: int
    estimate: float
    standard_error: float
    low: float
    high: float
    def __init__(self, items: _Optional[int] = ..., estimate: _Optional[float] = ..., standard_error: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class Independence(_message.Message):
    __slots__ = ("z", "variance_factor", "widened", "visible_from", "cut", "warnings")
    Z_FIELD_NUMBER: _ClassVar[int]
    VARIANCE_FACTOR_FIELD_NUMBER: _ClassVar[int]
    WIDENED_FIELD_NUMBER: _ClassVar[int]
    VISIBLE_FROM_FIELD_NUMBER: _ClassVar[int]
    CUT_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    z: float
    variance_factor: float
    widened: float
    visible_from: float
    cut: int
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, z: _Optional[float] = ..., variance_factor: _Optional[float] = ..., widened: _Optional[float] = ..., visible_from: _Optional[float] = ..., cut: _Optional[int] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...

class Rest(_message.Message):
    __slots__ = ("estimate", "standard_error", "low", "high")
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    STANDARD_ERROR_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    estimate: float
    standard_error: float
    low: float
    high: float
    def __init__(self, estimate: _Optional[float] = ..., standard_error: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class NumbersRequest(_message.Message):
    __slots__ = ("collection_id", "id_prefix", "average", "quantiles", "ranges", "averages", "areas", "confidence", "together", "periods", "every_look")
    COLLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    ID_PREFIX_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_FIELD_NUMBER: _ClassVar[int]
    QUANTILES_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    AVERAGES_FIELD_NUMBER: _ClassVar[int]
    AREAS_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    TOGETHER_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    EVERY_LOOK_FIELD_NUMBER: _ClassVar[int]
    collection_id: bytes
    id_prefix: str
    average: AverageQuestion
    quantiles: QuantilesQuestion
    ranges: RangesQuestion
    averages: AveragesQuestion
    areas: AreasQuestion
    confidence: float
    together: bool
    periods: AskedPeriods
    every_look: bool
    def __init__(self, collection_id: _Optional[bytes] = ..., id_prefix: _Optional[str] = ..., average: _Optional[_Union[AverageQuestion, _Mapping]] = ..., quantiles: _Optional[_Union[QuantilesQuestion, _Mapping]] = ..., ranges: _Optional[_Union[RangesQuestion, _Mapping]] = ..., averages: _Optional[_Union[AveragesQuestion, _Mapping]] = ..., areas: _Optional[_Union[AreasQuestion, _Mapping]] = ..., confidence: _Optional[float] = ..., together: bool = ..., periods: _Optional[_Union[AskedPeriods, _Mapping]] = ..., every_look: bool = ...) -> None: ...

class AverageQuestion(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AveragesQuestion(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AreasQuestion(_message.Message):
    __slots__ = ("areas",)
    AREAS_FIELD_NUMBER: _ClassVar[int]
    areas: _containers.RepeatedCompositeFieldContainer[Area]
    def __init__(self, areas: _Optional[_Iterable[_Union[Area, _Mapping]]] = ...) -> None: ...

class Area(_message.Message):
    __slots__ = ("x", "y")
    X_FIELD_NUMBER: _ClassVar[int]
    Y_FIELD_NUMBER: _ClassVar[int]
    x: Between
    y: Between
    def __init__(self, x: _Optional[_Union[Between, _Mapping]] = ..., y: _Optional[_Union[Between, _Mapping]] = ...) -> None: ...

class QuantilesQuestion(_message.Message):
    __slots__ = ("shares",)
    SHARES_FIELD_NUMBER: _ClassVar[int]
    shares: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, shares: _Optional[_Iterable[float]] = ...) -> None: ...

class RangesQuestion(_message.Message):
    __slots__ = ("between", "bins")
    BETWEEN_FIELD_NUMBER: _ClassVar[int]
    BINS_FIELD_NUMBER: _ClassVar[int]
    between: _containers.RepeatedCompositeFieldContainer[Between]
    bins: int
    def __init__(self, between: _Optional[_Iterable[_Union[Between, _Mapping]]] = ..., bins: _Optional[int] = ...) -> None: ...

class Between(_message.Message):
    __slots__ = ("first", "last")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    first: str
    last: str
    def __init__(self, first: _Optional[str] = ..., last: _Optional[str] = ...) -> None: ...

class NumbersResponse(_message.Message):
    __slots__ = ("average", "quantiles", "ranges", "averages", "areas", "collection", "periods")
    AVERAGE_FIELD_NUMBER: _ClassVar[int]
    QUANTILES_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    AVERAGES_FIELD_NUMBER: _ClassVar[int]
    AREAS_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    average: AverageAnswer
    quantiles: QuantilesAnswer
    ranges: RangesAnswer
    averages: AveragesAnswer
    areas: AreasAnswer
    collection: CollectionInfo
    periods: PeriodSpan
    def __init__(self, average: _Optional[_Union[AverageAnswer, _Mapping]] = ..., quantiles: _Optional[_Union[QuantilesAnswer, _Mapping]] = ..., ranges: _Optional[_Union[RangesAnswer, _Mapping]] = ..., averages: _Optional[_Union[AveragesAnswer, _Mapping]] = ..., areas: _Optional[_Union[AreasAnswer, _Mapping]] = ..., collection: _Optional[_Union[CollectionInfo, _Mapping]] = ..., periods: _Optional[_Union[PeriodSpan, _Mapping]] = ...) -> None: ...

class AverageAnswer(_message.Message):
    __slots__ = ("reports", "confidence", "average", "every_look", "more_for_half", "independence")
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_FIELD_NUMBER: _ClassVar[int]
    EVERY_LOOK_FIELD_NUMBER: _ClassVar[int]
    MORE_FOR_HALF_FIELD_NUMBER: _ClassVar[int]
    INDEPENDENCE_FIELD_NUMBER: _ClassVar[int]
    reports: int
    confidence: float
    average: Average
    every_look: bool
    more_for_half: int
    independence: Independence
    def __init__(self, reports: _Optional[int] = ..., confidence: _Optional[float] = ..., average: _Optional[_Union[Average, _Mapping]] = ..., every_look: bool = ..., more_for_half: _Optional[int] = ..., independence: _Optional[_Union[Independence, _Mapping]] = ...) -> None: ...

class Average(_message.Message):
    __slots__ = ("estimate", "standard_error", "low", "high", "holders")
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    STANDARD_ERROR_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    estimate: float
    standard_error: float
    low: float
    high: float
    holders: float
    def __init__(self, estimate: _Optional[float] = ..., standard_error: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., holders: _Optional[float] = ...) -> None: ...

class AveragesAnswer(_message.Message):
    __slots__ = ("reports", "confidence", "coverage", "holders", "number", "averages", "more_for_half", "independence", "every_look")
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    AVERAGES_FIELD_NUMBER: _ClassVar[int]
    MORE_FOR_HALF_FIELD_NUMBER: _ClassVar[int]
    INDEPENDENCE_FIELD_NUMBER: _ClassVar[int]
    EVERY_LOOK_FIELD_NUMBER: _ClassVar[int]
    reports: int
    confidence: float
    coverage: str
    holders: float
    number: str
    averages: _containers.RepeatedCompositeFieldContainer[CellAverage]
    more_for_half: int
    independence: Independence
    every_look: bool
    def __init__(self, reports: _Optional[int] = ..., confidence: _Optional[float] = ..., coverage: _Optional[str] = ..., holders: _Optional[float] = ..., number: _Optional[str] = ..., averages: _Optional[_Iterable[_Union[CellAverage, _Mapping]]] = ..., more_for_half: _Optional[int] = ..., independence: _Optional[_Union[Independence, _Mapping]] = ..., every_look: bool = ...) -> None: ...

class CellAverage(_message.Message):
    __slots__ = ("item", "estimate", "standard_error", "low", "high", "users", "users_error", "users_low", "users_high")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    STANDARD_ERROR_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    USERS_FIELD_NUMBER: _ClassVar[int]
    USERS_ERROR_FIELD_NUMBER: _ClassVar[int]
    USERS_LOW_FIELD_NUMBER: _ClassVar[int]
    USERS_HIGH_FIELD_NUMBER: _ClassVar[int]
    item: Item
    estimate: float
    standard_error: float
    low: float
    high: float
    users: float
    users_error: float
    users_low: float
    users_high: float
    def __init__(self, item: _Optional[_Union[Item, _Mapping]] = ..., estimate: _Optional[float] = ..., standard_error: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., users: _Optional[float] = ..., users_error: _Optional[float] = ..., users_low: _Optional[float] = ..., users_high: _Optional[float] = ...) -> None: ...

class AreasAnswer(_message.Message):
    __slots__ = ("reports", "confidence", "coverage", "holders", "x", "y", "areas", "map", "more_for_half", "independence", "every_look")
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    X_FIELD_NUMBER: _ClassVar[int]
    Y_FIELD_NUMBER: _ClassVar[int]
    AREAS_FIELD_NUMBER: _ClassVar[int]
    MAP_FIELD_NUMBER: _ClassVar[int]
    MORE_FOR_HALF_FIELD_NUMBER: _ClassVar[int]
    INDEPENDENCE_FIELD_NUMBER: _ClassVar[int]
    EVERY_LOOK_FIELD_NUMBER: _ClassVar[int]
    reports: int
    confidence: float
    coverage: str
    holders: float
    x: str
    y: str
    areas: _containers.RepeatedCompositeFieldContainer[AreaCount]
    map: bool
    more_for_half: int
    independence: Independence
    every_look: bool
    def __init__(self, reports: _Optional[int] = ..., confidence: _Optional[float] = ..., coverage: _Optional[str] = ..., holders: _Optional[float] = ..., x: _Optional[str] = ..., y: _Optional[str] = ..., areas: _Optional[_Iterable[_Union[AreaCount, _Mapping]]] = ..., map: bool = ..., more_for_half: _Optional[int] = ..., independence: _Optional[_Union[Independence, _Mapping]] = ..., every_look: bool = ...) -> None: ...

class AreaCount(_message.Message):
    __slots__ = ("first_x", "last_x", "first_y", "last_y", "estimate", "standard_error", "low", "high", "on_lines")
    FIRST_X_FIELD_NUMBER: _ClassVar[int]
    LAST_X_FIELD_NUMBER: _ClassVar[int]
    FIRST_Y_FIELD_NUMBER: _ClassVar[int]
    LAST_Y_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    STANDARD_ERROR_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    ON_LINES_FIELD_NUMBER: _ClassVar[int]
    first_x: str
    last_x: str
    first_y: str
    last_y: str
    estimate: float
    standard_error: float
    low: float
    high: float
    on_lines: bool
    def __init__(self, first_x: _Optional[str] = ..., last_x: _Optional[str] = ..., first_y: _Optional[str] = ..., last_y: _Optional[str] = ..., estimate: _Optional[float] = ..., standard_error: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., on_lines: bool = ...) -> None: ...

class QuantilesAnswer(_message.Message):
    __slots__ = ("reports", "confidence", "coverage", "holders", "quantiles", "more_for_half", "independence")
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    QUANTILES_FIELD_NUMBER: _ClassVar[int]
    MORE_FOR_HALF_FIELD_NUMBER: _ClassVar[int]
    INDEPENDENCE_FIELD_NUMBER: _ClassVar[int]
    reports: int
    confidence: float
    coverage: str
    holders: float
    quantiles: _containers.RepeatedCompositeFieldContainer[Quantile]
    more_for_half: int
    independence: Independence
    def __init__(self, reports: _Optional[int] = ..., confidence: _Optional[float] = ..., coverage: _Optional[str] = ..., holders: _Optional[float] = ..., quantiles: _Optional[_Iterable[_Union[Quantile, _Mapping]]] = ..., more_for_half: _Optional[int] = ..., independence: _Optional[_Union[Independence, _Mapping]] = ...) -> None: ...

class Quantile(_message.Message):
    __slots__ = ("share", "estimate", "low", "high")
    SHARE_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    share: float
    estimate: str
    low: str
    high: str
    def __init__(self, share: _Optional[float] = ..., estimate: _Optional[str] = ..., low: _Optional[str] = ..., high: _Optional[str] = ...) -> None: ...

class RangesAnswer(_message.Message):
    __slots__ = ("reports", "confidence", "coverage", "holders", "ranges", "every_look", "more_for_half", "independence")
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    EVERY_LOOK_FIELD_NUMBER: _ClassVar[int]
    MORE_FOR_HALF_FIELD_NUMBER: _ClassVar[int]
    INDEPENDENCE_FIELD_NUMBER: _ClassVar[int]
    reports: int
    confidence: float
    coverage: str
    holders: float
    ranges: _containers.RepeatedCompositeFieldContainer[Range]
    every_look: bool
    more_for_half: int
    independence: Independence
    def __init__(self, reports: _Optional[int] = ..., confidence: _Optional[float] = ..., coverage: _Optional[str] = ..., holders: _Optional[float] = ..., ranges: _Optional[_Iterable[_Union[Range, _Mapping]]] = ..., every_look: bool = ..., more_for_half: _Optional[int] = ..., independence: _Optional[_Union[Independence, _Mapping]] = ...) -> None: ...

class Range(_message.Message):
    __slots__ = ("first", "last", "estimate", "standard_error", "low", "high")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    STANDARD_ERROR_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    first: str
    last: str
    estimate: float
    standard_error: float
    low: float
    high: float
    def __init__(self, first: _Optional[str] = ..., last: _Optional[str] = ..., estimate: _Optional[float] = ..., standard_error: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class AttributesRequest(_message.Message):
    __slots__ = ("collection_id", "id_prefix", "pairs", "top", "confidence", "together", "periods", "every_look")
    COLLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    ID_PREFIX_FIELD_NUMBER: _ClassVar[int]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    TOP_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    TOGETHER_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    EVERY_LOOK_FIELD_NUMBER: _ClassVar[int]
    collection_id: bytes
    id_prefix: str
    pairs: bool
    top: int
    confidence: float
    together: bool
    periods: AskedPeriods
    every_look: bool
    def __init__(self, collection_id: _Optional[bytes] = ..., id_prefix: _Optional[str] = ..., pairs: bool = ..., top: _Optional[int] = ..., confidence: _Optional[float] = ..., together: bool = ..., periods: _Optional[_Union[AskedPeriods, _Mapping]] = ..., every_look: bool = ...) -> None: ...

class AttributesResponse(_message.Message):
    __slots__ = ("reports", "confidence", "coverage", "rows", "collection", "periods", "every_look", "more_for_half", "independence")
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    EVERY_LOOK_FIELD_NUMBER: _ClassVar[int]
    MORE_FOR_HALF_FIELD_NUMBER: _ClassVar[int]
    INDEPENDENCE_FIELD_NUMBER: _ClassVar[int]
    reports: int
    confidence: float
    coverage: str
    rows: _containers.RepeatedCompositeFieldContainer[Held]
    collection: CollectionInfo
    periods: PeriodSpan
    every_look: bool
    more_for_half: int
    independence: Independence
    def __init__(self, reports: _Optional[int] = ..., confidence: _Optional[float] = ..., coverage: _Optional[str] = ..., rows: _Optional[_Iterable[_Union[Held, _Mapping]]] = ..., collection: _Optional[_Union[CollectionInfo, _Mapping]] = ..., periods: _Optional[_Union[PeriodSpan, _Mapping]] = ..., every_look: bool = ..., more_for_half: _Optional[int] = ..., independence: _Optional[_Union[Independence, _Mapping]] = ...) -> None: ...

class Held(_message.Message):
    __slots__ = ("attributes", "estimate", "standard_error", "low", "high")
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    STANDARD_ERROR_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    attributes: _containers.RepeatedScalarFieldContainer[str]
    estimate: float
    standard_error: float
    low: float
    high: float
    def __init__(self, attributes: _Optional[_Iterable[str]] = ..., estimate: _Optional[float] = ..., standard_error: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class TablesRequest(_message.Message):
    __slots__ = ("collection_id", "id_prefix", "periods")
    COLLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    ID_PREFIX_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    collection_id: bytes
    id_prefix: str
    periods: AskedPeriods
    def __init__(self, collection_id: _Optional[bytes] = ..., id_prefix: _Optional[str] = ..., periods: _Optional[_Union[AskedPeriods, _Mapping]] = ...) -> None: ...

class TablesResponse(_message.Message):
    __slots__ = ("reports", "tables", "signals", "collection", "periods", "independence")
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    SIGNALS_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    INDEPENDENCE_FIELD_NUMBER: _ClassVar[int]
    reports: int
    tables: _containers.RepeatedCompositeFieldContainer[FieldsTable]
    signals: _containers.RepeatedCompositeFieldContainer[FieldsSignal]
    collection: CollectionInfo
    periods: PeriodSpan
    independence: Independence
    def __init__(self, reports: _Optional[int] = ..., tables: _Optional[_Iterable[_Union[FieldsTable, _Mapping]]] = ..., signals: _Optional[_Iterable[_Union[FieldsSignal, _Mapping]]] = ..., collection: _Optional[_Union[CollectionInfo, _Mapping]] = ..., periods: _Optional[_Union[PeriodSpan, _Mapping]] = ..., independence: _Optional[_Union[Independence, _Mapping]] = ...) -> None: ...

class FieldsTable(_message.Message):
    __slots__ = ("fields", "estimates")
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    ESTIMATES_FIELD_NUMBER: _ClassVar[int]
    fields: _containers.RepeatedScalarFieldContainer[str]
    estimates: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, fields: _Optional[_Iterable[str]] = ..., estimates: _Optional[_Iterable[float]] = ...) -> None: ...

class FieldsSignal(_message.Message):
    __slots__ = ("fields", "ratio", "told")
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    RATIO_FIELD_NUMBER: _ClassVar[int]
    TOLD_FIELD_NUMBER: _ClassVar[int]
    fields: _containers.RepeatedScalarFieldContainer[str]
    ratio: float
    told: bool
    def __init__(self, fields: _Optional[_Iterable[str]] = ..., ratio: _Optional[float] = ..., told: bool = ...) -> None: ...

class RelationsRequest(_message.Message):
    __slots__ = ("collection_id", "id_prefix", "gaps", "rules", "line", "confidence", "periods")
    COLLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    ID_PREFIX_FIELD_NUMBER: _ClassVar[int]
    GAPS_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    collection_id: bytes
    id_prefix: str
    gaps: GapsQuestion
    rules: RulesQuestion
    line: LineQuestion
    confidence: float
    periods: AskedPeriods
    def __init__(self, collection_id: _Optional[bytes] = ..., id_prefix: _Optional[str] = ..., gaps: _Optional[_Union[GapsQuestion, _Mapping]] = ..., rules: _Optional[_Union[RulesQuestion, _Mapping]] = ..., line: _Optional[_Union[LineQuestion, _Mapping]] = ..., confidence: _Optional[float] = ..., periods: _Optional[_Union[AskedPeriods, _Mapping]] = ...) -> None: ...

class GapsQuestion(_message.Message):
    __slots__ = ("group", "outcome", "counted", "where", "tolerance")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    COUNTED_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    TOLERANCE_FIELD_NUMBER: _ClassVar[int]
    group: str
    outcome: str
    counted: _containers.RepeatedCompositeFieldContainer[Item]
    where: _containers.RepeatedCompositeFieldContainer[Slice]
    tolerance: float
    def __init__(self, group: _Optional[str] = ..., outcome: _Optional[str] = ..., counted: _Optional[_Iterable[_Union[Item, _Mapping]]] = ..., where: _Optional[_Iterable[_Union[Slice, _Mapping]]] = ..., tolerance: _Optional[float] = ...) -> None: ...

class RulesQuestion(_message.Message):
    __slots__ = ("fields", "label", "positive")
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    POSITIVE_FIELD_NUMBER: _ClassVar[int]
    fields: _containers.RepeatedScalarFieldContainer[str]
    label: str
    positive: _containers.RepeatedCompositeFieldContainer[Item]
    def __init__(self, fields: _Optional[_Iterable[str]] = ..., label: _Optional[str] = ..., positive: _Optional[_Iterable[_Union[Item, _Mapping]]] = ...) -> None: ...

class LineQuestion(_message.Message):
    __slots__ = ("fields", "label")
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    fields: _containers.RepeatedScalarFieldContainer[str]
    label: str
    def __init__(self, fields: _Optional[_Iterable[str]] = ..., label: _Optional[str] = ...) -> None: ...

class RelationsResponse(_message.Message):
    __slots__ = ("gaps", "rules", "line", "collection", "periods")
    GAPS_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    gaps: GapsAnswer
    rules: RulesAnswer
    line: LineAnswer
    collection: CollectionInfo
    periods: PeriodSpan
    def __init__(self, gaps: _Optional[_Union[GapsAnswer, _Mapping]] = ..., rules: _Optional[_Union[RulesAnswer, _Mapping]] = ..., line: _Optional[_Union[LineAnswer, _Mapping]] = ..., collection: _Optional[_Union[CollectionInfo, _Mapping]] = ..., periods: _Optional[_Union[PeriodSpan, _Mapping]] = ...) -> None: ...

class GapsAnswer(_message.Message):
    __slots__ = ("reports", "confidence", "coverage", "group", "outcome", "tolerance", "verdict", "rows", "gaps", "separation", "where", "more_for_half", "independence")
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    TOLERANCE_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    GAPS_FIELD_NUMBER: _ClassVar[int]
    SEPARATION_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    MORE_FOR_HALF_FIELD_NUMBER: _ClassVar[int]
    INDEPENDENCE_FIELD_NUMBER: _ClassVar[int]
    reports: int
    confidence: float
    coverage: str
    group: str
    outcome: str
    tolerance: float
    verdict: Verdict
    rows: _containers.RepeatedCompositeFieldContainer[GroupShare]
    gaps: _containers.RepeatedCompositeFieldContainer[ParityGap]
    separation: float
    where: _containers.RepeatedScalarFieldContainer[str]
    more_for_half: int
    independence: Independence
    def __init__(self, reports: _Optional[int] = ..., confidence: _Optional[float] = ..., coverage: _Optional[str] = ..., group: _Optional[str] = ..., outcome: _Optional[str] = ..., tolerance: _Optional[float] = ..., verdict: _Optional[_Union[Verdict, str]] = ..., rows: _Optional[_Iterable[_Union[GroupShare, _Mapping]]] = ..., gaps: _Optional[_Iterable[_Union[ParityGap, _Mapping]]] = ..., separation: _Optional[float] = ..., where: _Optional[_Iterable[str]] = ..., more_for_half: _Optional[int] = ..., independence: _Optional[_Union[Independence, _Mapping]] = ...) -> None: ...

class GroupShare(_message.Message):
    __slots__ = ("group", "estimate", "standard_error", "low", "high", "users", "users_error")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    STANDARD_ERROR_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    USERS_FIELD_NUMBER: _ClassVar[int]
    USERS_ERROR_FIELD_NUMBER: _ClassVar[int]
    group: str
    estimate: float
    standard_error: float
    low: float
    high: float
    users: float
    users_error: float
    def __init__(self, group: _Optional[str] = ..., estimate: _Optional[float] = ..., standard_error: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., users: _Optional[float] = ..., users_error: _Optional[float] = ...) -> None: ...

class ParityGap(_message.Message):
    __slots__ = ("first", "second", "estimate", "low", "high", "verdict")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    SECOND_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    first: str
    second: str
    estimate: float
    low: float
    high: float
    verdict: Verdict
    def __init__(self, first: _Optional[str] = ..., second: _Optional[str] = ..., estimate: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., verdict: _Optional[_Union[Verdict, str]] = ...) -> None: ...

class RulesAnswer(_message.Message):
    __slots__ = ("reports", "confidence", "coverage", "label", "counted", "rows", "more_for_half", "independence")
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    COUNTED_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    MORE_FOR_HALF_FIELD_NUMBER: _ClassVar[int]
    INDEPENDENCE_FIELD_NUMBER: _ClassVar[int]
    reports: int
    confidence: float
    coverage: str
    label: str
    counted: float
    rows: _containers.RepeatedCompositeFieldContainer[LearnedRule]
    more_for_half: int
    independence: Independence
    def __init__(self, reports: _Optional[int] = ..., confidence: _Optional[float] = ..., coverage: _Optional[str] = ..., label: _Optional[str] = ..., counted: _Optional[float] = ..., rows: _Optional[_Iterable[_Union[LearnedRule, _Mapping]]] = ..., more_for_half: _Optional[int] = ..., independence: _Optional[_Union[Independence, _Mapping]] = ...) -> None: ...

class LearnedRule(_message.Message):
    __slots__ = ("form", "rule", "fields", "values", "rules", "estimate", "standard_error", "low", "high", "gain", "gain_low", "gain_high", "verdict")
    FORM_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    STANDARD_ERROR_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    GAIN_FIELD_NUMBER: _ClassVar[int]
    GAIN_LOW_FIELD_NUMBER: _ClassVar[int]
    GAIN_HIGH_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    form: str
    rule: str
    fields: _containers.RepeatedScalarFieldContainer[str]
    values: _containers.RepeatedScalarFieldContainer[str]
    rules: int
    estimate: float
    standard_error: float
    low: float
    high: float
    gain: float
    gain_low: float
    gain_high: float
    verdict: Verdict
    def __init__(self, form: _Optional[str] = ..., rule: _Optional[str] = ..., fields: _Optional[_Iterable[str]] = ..., values: _Optional[_Iterable[str]] = ..., rules: _Optional[int] = ..., estimate: _Optional[float] = ..., standard_error: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., gain: _Optional[float] = ..., gain_low: _Optional[float] = ..., gain_high: _Optional[float] = ..., verdict: _Optional[_Union[Verdict, str]] = ...) -> None: ...

class LineAnswer(_message.Message):
    __slots__ = ("reports", "confidence", "coverage", "label", "rows", "more_for_half", "independence")
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    MORE_FOR_HALF_FIELD_NUMBER: _ClassVar[int]
    INDEPENDENCE_FIELD_NUMBER: _ClassVar[int]
    reports: int
    confidence: float
    coverage: str
    label: str
    rows: _containers.RepeatedCompositeFieldContainer[Coefficient]
    more_for_half: int
    independence: Independence
    def __init__(self, reports: _Optional[int] = ..., confidence: _Optional[float] = ..., coverage: _Optional[str] = ..., label: _Optional[str] = ..., rows: _Optional[_Iterable[_Union[Coefficient, _Mapping]]] = ..., more_for_half: _Optional[int] = ..., independence: _Optional[_Union[Independence, _Mapping]] = ...) -> None: ...

class Coefficient(_message.Message):
    __slots__ = ("name", "estimate", "standard_error", "low", "high")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    STANDARD_ERROR_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    name: str
    estimate: float
    standard_error: float
    low: float
    high: float
    def __init__(self, name: _Optional[str] = ..., estimate: _Optional[float] = ..., standard_error: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class Asked(_message.Message):
    __slots__ = ("given", "attributes", "ranges", "quantiles", "average", "table", "averages", "areas")
    GIVEN_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    QUANTILES_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    AVERAGES_FIELD_NUMBER: _ClassVar[int]
    AREAS_FIELD_NUMBER: _ClassVar[int]
    given: GivenItems
    attributes: AttributeSet
    ranges: RangesQuestion
    quantiles: QuantilesQuestion
    average: AverageQuestion
    table: TableQuestion
    averages: AveragesQuestion
    areas: AreasQuestion
    def __init__(self, given: _Optional[_Union[GivenItems, _Mapping]] = ..., attributes: _Optional[_Union[AttributeSet, _Mapping]] = ..., ranges: _Optional[_Union[RangesQuestion, _Mapping]] = ..., quantiles: _Optional[_Union[QuantilesQuestion, _Mapping]] = ..., average: _Optional[_Union[AverageQuestion, _Mapping]] = ..., table: _Optional[_Union[TableQuestion, _Mapping]] = ..., averages: _Optional[_Union[AveragesQuestion, _Mapping]] = ..., areas: _Optional[_Union[AreasQuestion, _Mapping]] = ...) -> None: ...

class TableQuestion(_message.Message):
    __slots__ = ("fields", "where", "cells")
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    CELLS_FIELD_NUMBER: _ClassVar[int]
    fields: _containers.RepeatedScalarFieldContainer[str]
    where: _containers.RepeatedCompositeFieldContainer[Slice]
    cells: _containers.RepeatedCompositeFieldContainer[Item]
    def __init__(self, fields: _Optional[_Iterable[str]] = ..., where: _Optional[_Iterable[_Union[Slice, _Mapping]]] = ..., cells: _Optional[_Iterable[_Union[Item, _Mapping]]] = ...) -> None: ...

class TrendRequest(_message.Message):
    __slots__ = ("collection_id", "id_prefix", "periods", "asked", "confidence", "together")
    COLLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    ID_PREFIX_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    TOGETHER_FIELD_NUMBER: _ClassVar[int]
    collection_id: bytes
    id_prefix: str
    periods: AskedPeriods
    asked: Asked
    confidence: float
    together: bool
    def __init__(self, collection_id: _Optional[bytes] = ..., id_prefix: _Optional[str] = ..., periods: _Optional[_Union[AskedPeriods, _Mapping]] = ..., asked: _Optional[_Union[Asked, _Mapping]] = ..., confidence: _Optional[float] = ..., together: bool = ...) -> None: ...

class TrendResponse(_message.Message):
    __slots__ = ("confidence", "coverage", "unit", "lines", "periods", "collection", "independence")
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    INDEPENDENCE_FIELD_NUMBER: _ClassVar[int]
    confidence: float
    coverage: str
    unit: str
    lines: _containers.RepeatedCompositeFieldContainer[TrendLine]
    periods: PeriodSpan
    collection: CollectionInfo
    independence: Independence
    def __init__(self, confidence: _Optional[float] = ..., coverage: _Optional[str] = ..., unit: _Optional[str] = ..., lines: _Optional[_Iterable[_Union[TrendLine, _Mapping]]] = ..., periods: _Optional[_Union[PeriodSpan, _Mapping]] = ..., collection: _Optional[_Union[CollectionInfo, _Mapping]] = ..., independence: _Optional[_Union[Independence, _Mapping]] = ...) -> None: ...

class TrendLine(_message.Message):
    __slots__ = ("label", "points")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    label: str
    points: _containers.RepeatedCompositeFieldContainer[TrendPoint]
    def __init__(self, label: _Optional[str] = ..., points: _Optional[_Iterable[_Union[TrendPoint, _Mapping]]] = ...) -> None: ...

class TrendPoint(_message.Message):
    __slots__ = ("period", "begins", "ends", "reports", "estimate", "standard_error", "low", "high")
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    BEGINS_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    STANDARD_ERROR_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    period: int
    begins: int
    ends: int
    reports: int
    estimate: float
    standard_error: float
    low: float
    high: float
    def __init__(self, period: _Optional[int] = ..., begins: _Optional[int] = ..., ends: _Optional[int] = ..., reports: _Optional[int] = ..., estimate: _Optional[float] = ..., standard_error: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class ChangeResponse(_message.Message):
    __slots__ = ("confidence", "lines", "periods", "collection", "independence", "unit")
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    INDEPENDENCE_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    confidence: float
    lines: _containers.RepeatedCompositeFieldContainer[ChangeLine]
    periods: PeriodSpan
    collection: CollectionInfo
    independence: Independence
    unit: str
    def __init__(self, confidence: _Optional[float] = ..., lines: _Optional[_Iterable[_Union[ChangeLine, _Mapping]]] = ..., periods: _Optional[_Union[PeriodSpan, _Mapping]] = ..., collection: _Optional[_Union[CollectionInfo, _Mapping]] = ..., independence: _Optional[_Union[Independence, _Mapping]] = ..., unit: _Optional[str] = ...) -> None: ...

class ChangeLine(_message.Message):
    __slots__ = ("label", "changed", "since", "looks")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    LOOKS_FIELD_NUMBER: _ClassVar[int]
    label: str
    changed: bool
    since: int
    looks: _containers.RepeatedCompositeFieldContainer[Look]
    def __init__(self, label: _Optional[str] = ..., changed: bool = ..., since: _Optional[int] = ..., looks: _Optional[_Iterable[_Union[Look, _Mapping]]] = ...) -> None: ...

class Look(_message.Message):
    __slots__ = ("period", "begins", "ends", "reports", "share", "before", "low", "high", "direction", "reports_before")
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    BEGINS_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    REPORTS_BEFORE_FIELD_NUMBER: _ClassVar[int]
    period: int
    begins: int
    ends: int
    reports: int
    share: float
    before: float
    low: float
    high: float
    direction: str
    reports_before: int
    def __init__(self, period: _Optional[int] = ..., begins: _Optional[int] = ..., ends: _Optional[int] = ..., reports: _Optional[int] = ..., share: _Optional[float] = ..., before: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., direction: _Optional[str] = ..., reports_before: _Optional[int] = ...) -> None: ...

class CompareRequest(_message.Message):
    __slots__ = ("first", "second", "asked", "confidence", "together")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    SECOND_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    TOGETHER_FIELD_NUMBER: _ClassVar[int]
    first: Side
    second: Side
    asked: Asked
    confidence: float
    together: bool
    def __init__(self, first: _Optional[_Union[Side, _Mapping]] = ..., second: _Optional[_Union[Side, _Mapping]] = ..., asked: _Optional[_Union[Asked, _Mapping]] = ..., confidence: _Optional[float] = ..., together: bool = ...) -> None: ...

class Side(_message.Message):
    __slots__ = ("collection_id", "id_prefix", "periods")
    COLLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    ID_PREFIX_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    collection_id: bytes
    id_prefix: str
    periods: AskedPeriods
    def __init__(self, collection_id: _Optional[bytes] = ..., id_prefix: _Optional[str] = ..., periods: _Optional[_Union[AskedPeriods, _Mapping]] = ...) -> None: ...

class CompareResponse(_message.Message):
    __slots__ = ("first_reports", "second_reports", "confidence", "coverage", "unit", "rows", "first_periods", "second_periods", "first", "second", "independence")
    FIRST_REPORTS_FIELD_NUMBER: _ClassVar[int]
    SECOND_REPORTS_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    FIRST_PERIODS_FIELD_NUMBER: _ClassVar[int]
    SECOND_PERIODS_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    SECOND_FIELD_NUMBER: _ClassVar[int]
    INDEPENDENCE_FIELD_NUMBER: _ClassVar[int]
    first_reports: int
    second_reports: int
    confidence: float
    coverage: str
    unit: str
    rows: _containers.RepeatedCompositeFieldContainer[Difference]
    first_periods: PeriodSpan
    second_periods: PeriodSpan
    first: CollectionInfo
    second: CollectionInfo
    independence: Independence
    def __init__(self, first_reports: _Optional[int] = ..., second_reports: _Optional[int] = ..., confidence: _Optional[float] = ..., coverage: _Optional[str] = ..., unit: _Optional[str] = ..., rows: _Optional[_Iterable[_Union[Difference, _Mapping]]] = ..., first_periods: _Optional[_Union[PeriodSpan, _Mapping]] = ..., second_periods: _Optional[_Union[PeriodSpan, _Mapping]] = ..., first: _Optional[_Union[CollectionInfo, _Mapping]] = ..., second: _Optional[_Union[CollectionInfo, _Mapping]] = ..., independence: _Optional[_Union[Independence, _Mapping]] = ...) -> None: ...

class Difference(_message.Message):
    __slots__ = ("label", "first", "second", "difference", "standard_error", "low", "high", "direction")
    LABEL_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    SECOND_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    STANDARD_ERROR_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    label: str
    first: float
    second: float
    difference: float
    standard_error: float
    low: float
    high: float
    direction: str
    def __init__(self, label: _Optional[str] = ..., first: _Optional[float] = ..., second: _Optional[float] = ..., difference: _Optional[float] = ..., standard_error: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., direction: _Optional[str] = ...) -> None: ...

class HeavyHittersRequest(_message.Message):
    __slots__ = ("collection_id", "limit", "id_prefix", "beta", "periods", "copies", "dictionary", "start", "beginning", "dictionary_source", "exploratory")
    COLLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    ID_PREFIX_FIELD_NUMBER: _ClassVar[int]
    BETA_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    COPIES_FIELD_NUMBER: _ClassVar[int]
    DICTIONARY_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    BEGINNING_FIELD_NUMBER: _ClassVar[int]
    DICTIONARY_SOURCE_FIELD_NUMBER: _ClassVar[int]
    EXPLORATORY_FIELD_NUMBER: _ClassVar[int]
    collection_id: bytes
    limit: int
    id_prefix: str
    beta: float
    periods: AskedPeriods
    copies: Copies
    dictionary: bytes
    start: _containers.RepeatedCompositeFieldContainer[Item]
    beginning: Beginning
    dictionary_source: DictionarySource
    exploratory: bool
    def __init__(self, collection_id: _Optional[bytes] = ..., limit: _Optional[int] = ..., id_prefix: _Optional[str] = ..., beta: _Optional[float] = ..., periods: _Optional[_Union[AskedPeriods, _Mapping]] = ..., copies: _Optional[_Union[Copies, str]] = ..., dictionary: _Optional[bytes] = ..., start: _Optional[_Iterable[_Union[Item, _Mapping]]] = ..., beginning: _Optional[_Union[Beginning, str]] = ..., dictionary_source: _Optional[_Union[DictionarySource, str]] = ..., exploratory: bool = ...) -> None: ...

class HeavyHittersResponse(_message.Message):
    __slots__ = ("progress", "result")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    progress: DecodeProgress
    result: HeavyHittersResult
    def __init__(self, progress: _Optional[_Union[DecodeProgress, _Mapping]] = ..., result: _Optional[_Union[HeavyHittersResult, _Mapping]] = ...) -> None: ...

class DecodeProgress(_message.Message):
    __slots__ = ("stage", "fraction")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    FRACTION_FIELD_NUMBER: _ClassVar[int]
    stage: str
    fraction: float
    def __init__(self, stage: _Optional[str] = ..., fraction: _Optional[float] = ...) -> None: ...

class HeavyHitter(_message.Message):
    __slots__ = ("item", "estimate", "standard_error", "low", "high", "score", "surest_low", "surest_high", "bar", "candidate")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    STANDARD_ERROR_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    SUREST_LOW_FIELD_NUMBER: _ClassVar[int]
    SUREST_HIGH_FIELD_NUMBER: _ClassVar[int]
    BAR_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_FIELD_NUMBER: _ClassVar[int]
    item: Item
    estimate: float
    standard_error: float
    low: float
    high: float
    score: float
    surest_low: float
    surest_high: float
    bar: float
    candidate: bool
    def __init__(self, item: _Optional[_Union[Item, _Mapping]] = ..., estimate: _Optional[float] = ..., standard_error: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., score: _Optional[float] = ..., surest_low: _Optional[float] = ..., surest_high: _Optional[float] = ..., bar: _Optional[float] = ..., candidate: bool = ...) -> None: ...

class UsedDictionary(_message.Message):
    __slots__ = ("candidates", "outside", "each", "earlier")
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    OUTSIDE_FIELD_NUMBER: _ClassVar[int]
    EACH_FIELD_NUMBER: _ClassVar[int]
    EARLIER_FIELD_NUMBER: _ClassVar[int]
    candidates: int
    outside: int
    each: float
    earlier: str
    def __init__(self, candidates: _Optional[int] = ..., outside: _Optional[int] = ..., each: _Optional[float] = ..., earlier: _Optional[str] = ...) -> None: ...

class HeavyHittersResult(_message.Message):
    __slots__ = ("reports", "items", "threshold", "probability", "guarantee", "too_few_reports", "none", "users_needed", "false_items", "decoder", "collection", "beta", "threshold_all", "periods", "independence", "dictionary", "began_with", "exploratory")
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    GUARANTEE_FIELD_NUMBER: _ClassVar[int]
    TOO_FEW_REPORTS_FIELD_NUMBER: _ClassVar[int]
    NONE_FIELD_NUMBER: _ClassVar[int]
    USERS_NEEDED_FIELD_NUMBER: _ClassVar[int]
    FALSE_ITEMS_FIELD_NUMBER: _ClassVar[int]
    DECODER_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    BETA_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_ALL_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    INDEPENDENCE_FIELD_NUMBER: _ClassVar[int]
    DICTIONARY_FIELD_NUMBER: _ClassVar[int]
    BEGAN_WITH_FIELD_NUMBER: _ClassVar[int]
    EXPLORATORY_FIELD_NUMBER: _ClassVar[int]
    reports: int
    items: _containers.RepeatedCompositeFieldContainer[HeavyHitter]
    threshold: float
    probability: float
    guarantee: _containers.RepeatedScalarFieldContainer[str]
    too_few_reports: bool
    none: HeavyHitter
    users_needed: int
    false_items: float
    decoder: str
    collection: CollectionInfo
    beta: float
    threshold_all: float
    periods: PeriodSpan
    independence: Independence
    dictionary: UsedDictionary
    began_with: int
    exploratory: bool
    def __init__(self, reports: _Optional[int] = ..., items: _Optional[_Iterable[_Union[HeavyHitter, _Mapping]]] = ..., threshold: _Optional[float] = ..., probability: _Optional[float] = ..., guarantee: _Optional[_Iterable[str]] = ..., too_few_reports: bool = ..., none: _Optional[_Union[HeavyHitter, _Mapping]] = ..., users_needed: _Optional[int] = ..., false_items: _Optional[float] = ..., decoder: _Optional[str] = ..., collection: _Optional[_Union[CollectionInfo, _Mapping]] = ..., beta: _Optional[float] = ..., threshold_all: _Optional[float] = ..., periods: _Optional[_Union[PeriodSpan, _Mapping]] = ..., independence: _Optional[_Union[Independence, _Mapping]] = ..., dictionary: _Optional[_Union[UsedDictionary, _Mapping]] = ..., began_with: _Optional[int] = ..., exploratory: bool = ...) -> None: ...

class ExportRequest(_message.Message):
    __slots__ = ("collection_id", "kind", "id_prefix", "periods")
    COLLECTION_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ID_PREFIX_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    collection_id: bytes
    kind: ExportKind
    id_prefix: str
    periods: AskedPeriods
    def __init__(self, collection_id: _Optional[bytes] = ..., kind: _Optional[_Union[ExportKind, str]] = ..., id_prefix: _Optional[str] = ..., periods: _Optional[_Union[AskedPeriods, _Mapping]] = ...) -> None: ...

class ExportResponse(_message.Message):
    __slots__ = ("data", "reports", "collection", "periods")
    DATA_FIELD_NUMBER: _ClassVar[int]
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    PERIODS_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    reports: int
    collection: CollectionInfo
    periods: PeriodSpan
    def __init__(self, data: _Optional[bytes] = ..., reports: _Optional[int] = ..., collection: _Optional[_Union[CollectionInfo, _Mapping]] = ..., periods: _Optional[_Union[PeriodSpan, _Mapping]] = ...) -> None: ...

class ServerStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ServerStatusResponse(_message.Message):
    __slots__ = ("version", "started", "collections", "waiting_bytes", "log_bytes", "draining", "role", "reports", "batches", "duplicates", "refused", "busy", "storage_errors", "damage", "failures", "lag_batches", "free_bytes", "list_key")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    COLLECTIONS_FIELD_NUMBER: _ClassVar[int]
    WAITING_BYTES_FIELD_NUMBER: _ClassVar[int]
    LOG_BYTES_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    DUPLICATES_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    BUSY_FIELD_NUMBER: _ClassVar[int]
    STORAGE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    DAMAGE_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    LAG_BATCHES_FIELD_NUMBER: _ClassVar[int]
    FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    LIST_KEY_FIELD_NUMBER: _ClassVar[int]
    version: str
    started: int
    collections: int
    waiting_bytes: int
    log_bytes: int
    draining: bool
    role: str
    reports: int
    batches: int
    duplicates: int
    refused: _containers.RepeatedCompositeFieldContainer[CountedReason]
    busy: _containers.RepeatedCompositeFieldContainer[CountedReason]
    storage_errors: int
    damage: int
    failures: int
    lag_batches: int
    free_bytes: int
    list_key: bytes
    def __init__(self, version: _Optional[str] = ..., started: _Optional[int] = ..., collections: _Optional[int] = ..., waiting_bytes: _Optional[int] = ..., log_bytes: _Optional[int] = ..., draining: bool = ..., role: _Optional[str] = ..., reports: _Optional[int] = ..., batches: _Optional[int] = ..., duplicates: _Optional[int] = ..., refused: _Optional[_Iterable[_Union[CountedReason, _Mapping]]] = ..., busy: _Optional[_Iterable[_Union[CountedReason, _Mapping]]] = ..., storage_errors: _Optional[int] = ..., damage: _Optional[int] = ..., failures: _Optional[int] = ..., lag_batches: _Optional[int] = ..., free_bytes: _Optional[int] = ..., list_key: _Optional[bytes] = ...) -> None: ...

class CountedReason(_message.Message):
    __slots__ = ("reason", "count")
    REASON_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    reason: str
    count: int
    def __init__(self, reason: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

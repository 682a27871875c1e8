from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Collection(_message.Message):
    __slots__ = ("question", "window", "relay")
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    RELAY_FIELD_NUMBER: _ClassVar[int]
    question: bytes
    window: Window
    relay: RelayTerms
    def __init__(self, question: _Optional[bytes] = ..., window: _Optional[_Union[Window, _Mapping]] = ..., relay: _Optional[_Union[RelayTerms, _Mapping]] = ...) -> None: ...

class Window(_message.Message):
    __slots__ = ("opens", "closes")
    OPENS_FIELD_NUMBER: _ClassVar[int]
    CLOSES_FIELD_NUMBER: _ClassVar[int]
    opens: int
    closes: int
    def __init__(self, opens: _Optional[int] = ..., closes: _Optional[int] = ...) -> None: ...

class RelayTerms(_message.Message):
    __slots__ = ("smallest_batch",)
    SMALLEST_BATCH_FIELD_NUMBER: _ClassVar[int]
    smallest_batch: int
    def __init__(self, smallest_batch: _Optional[int] = ...) -> None: ...

class Question(_message.Message):
    __slots__ = ("version", "text", "domain", "epsilon", "mechanism", "schedule", "nonce")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    version: int
    text: str
    domain: Domain
    epsilon: str
    mechanism: Mechanism
    schedule: Schedule
    nonce: int
    def __init__(self, version: _Optional[int] = ..., text: _Optional[str] = ..., domain: _Optional[_Union[Domain, _Mapping]] = ..., epsilon: _Optional[str] = ..., mechanism: _Optional[_Union[Mechanism, _Mapping]] = ..., schedule: _Optional[_Union[Schedule, _Mapping]] = ..., nonce: _Optional[int] = ...) -> None: ...

class Domain(_message.Message):
    __slots__ = ("categories", "strings", "integers", "attributes", "record", "sets")
    CATEGORIES_FIELD_NUMBER: _ClassVar[int]
    STRINGS_FIELD_NUMBER: _ClassVar[int]
    INTEGERS_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    SETS_FIELD_NUMBER: _ClassVar[int]
    categories: Categories
    strings: Strings
    integers: Integers
    attributes: Attributes
    record: Record
    sets: Sets
    def __init__(self, categories: _Optional[_Union[Categories, _Mapping]] = ..., strings: _Optional[_Union[Strings, _Mapping]] = ..., integers: _Optional[_Union[Integers, _Mapping]] = ..., attributes: _Optional[_Union[Attributes, _Mapping]] = ..., record: _Optional[_Union[Record, _Mapping]] = ..., sets: _Optional[_Union[Sets, _Mapping]] = ...) -> None: ...

class Categories(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class Strings(_message.Message):
    __slots__ = ("max_bytes",)
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    max_bytes: int
    def __init__(self, max_bytes: _Optional[int] = ...) -> None: ...

class Integers(_message.Message):
    __slots__ = ("lowest", "count")
    LOWEST_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    lowest: int
    count: int
    def __init__(self, lowest: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class Attributes(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class Sets(_message.Message):
    __slots__ = ("names", "most")
    NAMES_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    most: int
    def __init__(self, names: _Optional[_Iterable[str]] = ..., most: _Optional[int] = ...) -> None: ...

class Record(_message.Message):
    __slots__ = ("fields",)
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    fields: _containers.RepeatedCompositeFieldContainer[Field]
    def __init__(self, fields: _Optional[_Iterable[_Union[Field, _Mapping]]] = ...) -> None: ...

class Field(_message.Message):
    __slots__ = ("name", "categories", "integers", "yes_no")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CATEGORIES_FIELD_NUMBER: _ClassVar[int]
    INTEGERS_FIELD_NUMBER: _ClassVar[int]
    YES_NO_FIELD_NUMBER: _ClassVar[int]
    name: str
    categories: Categories
    integers: Integers
    yes_no: YesNo
    def __init__(self, name: _Optional[str] = ..., categories: _Optional[_Union[Categories, _Mapping]] = ..., integers: _Optional[_Union[Integers, _Mapping]] = ..., yes_no: _Optional[_Union[YesNo, _Mapping]] = ...) -> None: ...

class YesNo(_message.Message):
    __slots__ = ("none_is_no",)
    NONE_IS_NO_FIELD_NUMBER: _ClassVar[int]
    none_is_no: bool
    def __init__(self, none_is_no: bool = ...) -> None: ...

class Schedule(_message.Message):
    __slots__ = ("period_seconds", "reports")
    PERIOD_SECONDS_FIELD_NUMBER: _ClassVar[int]
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    period_seconds: int
    reports: int
    def __init__(self, period_seconds: _Optional[int] = ..., reports: _Optional[int] = ...) -> None: ...

class Mechanism(_message.Message):
    __slots__ = ("randomized_response", "linear_hash", "hashtogram", "expander_sketch", "prefix_tree", "tree_sketch", "composed_response", "bounded_number", "genprot", "hierarchy", "sampled_attribute", "subset_selection", "sampled_table", "compiled_channel", "averaged_table", "sampled_grid", "set_selection", "shifted_channel", "every_field")
    RANDOMIZED_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    LINEAR_HASH_FIELD_NUMBER: _ClassVar[int]
    HASHTOGRAM_FIELD_NUMBER: _ClassVar[int]
    EXPANDER_SKETCH_FIELD_NUMBER: _ClassVar[int]
    PREFIX_TREE_FIELD_NUMBER: _ClassVar[int]
    TREE_SKETCH_FIELD_NUMBER: _ClassVar[int]
    COMPOSED_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    BOUNDED_NUMBER_FIELD_NUMBER: _ClassVar[int]
    GENPROT_FIELD_NUMBER: _ClassVar[int]
    HIERARCHY_FIELD_NUMBER: _ClassVar[int]
    SAMPLED_ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    SUBSET_SELECTION_FIELD_NUMBER: _ClassVar[int]
    SAMPLED_TABLE_FIELD_NUMBER: _ClassVar[int]
    COMPILED_CHANNEL_FIELD_NUMBER: _ClassVar[int]
    AVERAGED_TABLE_FIELD_NUMBER: _ClassVar[int]
    SAMPLED_GRID_FIELD_NUMBER: _ClassVar[int]
    SET_SELECTION_FIELD_NUMBER: _ClassVar[int]
    SHIFTED_CHANNEL_FIELD_NUMBER: _ClassVar[int]
    EVERY_FIELD_FIELD_NUMBER: _ClassVar[int]
    randomized_response: RandomizedResponse
    linear_hash: LinearHash
    hashtogram: Hashtogram
    expander_sketch: ExpanderSketch
    prefix_tree: PrefixTree
    tree_sketch: TreeSketch
    composed_response: ComposedResponse
    bounded_number: BoundedNumber
    genprot: GenProt
    hierarchy: Hierarchy
    sampled_attribute: SampledAttribute
    subset_selection: SubsetSelection
    sampled_table: SampledTable
    compiled_channel: CompiledChannel
    averaged_table: AveragedTable
    sampled_grid: SampledGrid
    set_selection: SetSelection
    shifted_channel: ShiftedChannel
    every_field: EveryField
    def __init__(self, randomized_response: _Optional[_Union[RandomizedResponse, _Mapping]] = ..., linear_hash: _Optional[_Union[LinearHash, _Mapping]] = ..., hashtogram: _Optional[_Union[Hashtogram, _Mapping]] = ..., expander_sketch: _Optional[_Union[ExpanderSketch, _Mapping]] = ..., prefix_tree: _Optional[_Union[PrefixTree, _Mapping]] = ..., tree_sketch: _Optional[_Union[TreeSketch, _Mapping]] = ..., composed_response: _Optional[_Union[ComposedResponse, _Mapping]] = ..., bounded_number: _Optional[_Union[BoundedNumber, _Mapping]] = ..., genprot: _Optional[_Union[GenProt, _Mapping]] = ..., hierarchy: _Optional[_Union[Hierarchy, _Mapping]] = ..., sampled_attribute: _Optional[_Union[SampledAttribute, _Mapping]] = ..., subset_selection: _Optional[_Union[SubsetSelection, _Mapping]] = ..., sampled_table: _Optional[_Union[SampledTable, _Mapping]] = ..., compiled_channel: _Optional[_Union[CompiledChannel, _Mapping]] = ..., averaged_table: _Optional[_Union[AveragedTable, _Mapping]] = ..., sampled_grid: _Optional[_Union[SampledGrid, _Mapping]] = ..., set_selection: _Optional[_Union[SetSelection, _Mapping]] = ..., shifted_channel: _Optional[_Union[ShiftedChannel, _Mapping]] = ..., every_field: _Optional[_Union[EveryField, _Mapping]] = ...) -> None: ...

class RandomizedResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LinearHash(_message.Message):
    __slots__ = ("q", "t")
    Q_FIELD_NUMBER: _ClassVar[int]
    T_FIELD_NUMBER: _ClassVar[int]
    q: int
    t: int
    def __init__(self, q: _Optional[int] = ..., t: _Optional[int] = ...) -> None: ...

class Hashtogram(_message.Message):
    __slots__ = ("rows", "q", "t")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    Q_FIELD_NUMBER: _ClassVar[int]
    T_FIELD_NUMBER: _ClassVar[int]
    rows: int
    q: int
    t: int
    def __init__(self, rows: _Optional[int] = ..., q: _Optional[int] = ..., t: _Optional[int] = ...) -> None: ...

class ExpanderSketch(_message.Message):
    __slots__ = ("teams", "chunk_bits", "hash_bits", "degree", "attempt", "q", "t", "bucket_bits", "oracle_rows", "oracle_q", "oracle_t", "symbol_pointers")
    TEAMS_FIELD_NUMBER: _ClassVar[int]
    CHUNK_BITS_FIELD_NUMBER: _ClassVar[int]
    HASH_BITS_FIELD_NUMBER: _ClassVar[int]
    DEGREE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    Q_FIELD_NUMBER: _ClassVar[int]
    T_FIELD_NUMBER: _ClassVar[int]
    BUCKET_BITS_FIELD_NUMBER: _ClassVar[int]
    ORACLE_ROWS_FIELD_NUMBER: _ClassVar[int]
    ORACLE_Q_FIELD_NUMBER: _ClassVar[int]
    ORACLE_T_FIELD_NUMBER: _ClassVar[int]
    SYMBOL_POINTERS_FIELD_NUMBER: _ClassVar[int]
    teams: int
    chunk_bits: int
    hash_bits: int
    degree: int
    attempt: int
    q: int
    t: int
    bucket_bits: int
    oracle_rows: int
    oracle_q: int
    oracle_t: int
    symbol_pointers: int
    def __init__(self, teams: _Optional[int] = ..., chunk_bits: _Optional[int] = ..., hash_bits: _Optional[int] = ..., degree: _Optional[int] = ..., attempt: _Optional[int] = ..., q: _Optional[int] = ..., t: _Optional[int] = ..., bucket_bits: _Optional[int] = ..., oracle_rows: _Optional[int] = ..., oracle_q: _Optional[int] = ..., oracle_t: _Optional[int] = ..., symbol_pointers: _Optional[int] = ...) -> None: ...

class PrefixTree(_message.Message):
    __slots__ = ("first_bits", "step_bits", "cell_bits", "q", "t")
    FIRST_BITS_FIELD_NUMBER: _ClassVar[int]
    STEP_BITS_FIELD_NUMBER: _ClassVar[int]
    CELL_BITS_FIELD_NUMBER: _ClassVar[int]
    Q_FIELD_NUMBER: _ClassVar[int]
    T_FIELD_NUMBER: _ClassVar[int]
    first_bits: int
    step_bits: int
    cell_bits: int
    q: int
    t: int
    def __init__(self, first_bits: _Optional[int] = ..., step_bits: _Optional[int] = ..., cell_bits: _Optional[int] = ..., q: _Optional[int] = ..., t: _Optional[int] = ...) -> None: ...

class TreeSketch(_message.Message):
    __slots__ = ("first_bits", "step_bits", "cell_bits", "q", "t", "check_levels")
    FIRST_BITS_FIELD_NUMBER: _ClassVar[int]
    STEP_BITS_FIELD_NUMBER: _ClassVar[int]
    CELL_BITS_FIELD_NUMBER: _ClassVar[int]
    Q_FIELD_NUMBER: _ClassVar[int]
    T_FIELD_NUMBER: _ClassVar[int]
    CHECK_LEVELS_FIELD_NUMBER: _ClassVar[int]
    first_bits: int
    step_bits: int
    cell_bits: int
    q: int
    t: int
    check_levels: int
    def __init__(self, first_bits: _Optional[int] = ..., step_bits: _Optional[int] = ..., cell_bits: _Optional[int] = ..., q: _Optional[int] = ..., t: _Optional[int] = ..., check_levels: _Optional[int] = ...) -> None: ...

class ComposedResponse(_message.Message):
    __slots__ = ("low", "high", "flip")
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    FLIP_FIELD_NUMBER: _ClassVar[int]
    low: int
    high: int
    flip: int
    def __init__(self, low: _Optional[int] = ..., high: _Optional[int] = ..., flip: _Optional[int] = ...) -> None: ...

class SampledAttribute(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class BoundedNumber(_message.Message):
    __slots__ = ("answers", "window", "presence")
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    PRESENCE_FIELD_NUMBER: _ClassVar[int]
    answers: int
    window: int
    presence: int
    def __init__(self, answers: _Optional[int] = ..., window: _Optional[int] = ..., presence: _Optional[int] = ...) -> None: ...

class GenProt(_message.Message):
    __slots__ = ("draws", "base", "sigma")
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    BASE_FIELD_NUMBER: _ClassVar[int]
    SIGMA_FIELD_NUMBER: _ClassVar[int]
    draws: int
    base: int
    sigma: int
    def __init__(self, draws: _Optional[int] = ..., base: _Optional[int] = ..., sigma: _Optional[int] = ...) -> None: ...

class Hierarchy(_message.Message):
    __slots__ = ("branching", "q")
    BRANCHING_FIELD_NUMBER: _ClassVar[int]
    Q_FIELD_NUMBER: _ClassVar[int]
    branching: int
    q: int
    def __init__(self, branching: _Optional[int] = ..., q: _Optional[int] = ...) -> None: ...

class SubsetSelection(_message.Message):
    __slots__ = ("d",)
    D_FIELD_NUMBER: _ClassVar[int]
    d: int
    def __init__(self, d: _Optional[int] = ...) -> None: ...

class SampledTable(_message.Message):
    __slots__ = ("tables", "weights", "responses", "numbers")
    TABLES_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    RESPONSES_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    tables: _containers.RepeatedScalarFieldContainer[int]
    weights: _containers.RepeatedScalarFieldContainer[int]
    responses: _containers.RepeatedScalarFieldContainer[int]
    numbers: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, tables: _Optional[_Iterable[int]] = ..., weights: _Optional[_Iterable[int]] = ..., responses: _Optional[_Iterable[int]] = ..., numbers: _Optional[_Iterable[int]] = ...) -> None: ...

class CompiledChannel(_message.Message):
    __slots__ = ("weights", "distances")
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    DISTANCES_FIELD_NUMBER: _ClassVar[int]
    weights: _containers.RepeatedScalarFieldContainer[int]
    distances: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, weights: _Optional[_Iterable[int]] = ..., distances: _Optional[_Iterable[int]] = ...) -> None: ...

class ShiftedChannel(_message.Message):
    __slots__ = ("rings", "steps", "absent", "moves", "empties")
    RINGS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    ABSENT_FIELD_NUMBER: _ClassVar[int]
    MOVES_FIELD_NUMBER: _ClassVar[int]
    EMPTIES_FIELD_NUMBER: _ClassVar[int]
    rings: _containers.RepeatedScalarFieldContainer[int]
    steps: _containers.RepeatedScalarFieldContainer[int]
    absent: _containers.RepeatedScalarFieldContainer[int]
    moves: _containers.RepeatedScalarFieldContainer[int]
    empties: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, rings: _Optional[_Iterable[int]] = ..., steps: _Optional[_Iterable[int]] = ..., absent: _Optional[_Iterable[int]] = ..., moves: _Optional[_Iterable[int]] = ..., empties: _Optional[_Iterable[int]] = ...) -> None: ...

class AveragedTable(_message.Message):
    __slots__ = ("number", "q")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    Q_FIELD_NUMBER: _ClassVar[int]
    number: int
    q: int
    def __init__(self, number: _Optional[int] = ..., q: _Optional[int] = ...) -> None: ...

class SampledGrid(_message.Message):
    __slots__ = ("columns", "rows", "across", "down", "lines", "tiles", "lines_q", "tiles_q")
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    ACROSS_FIELD_NUMBER: _ClassVar[int]
    DOWN_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    TILES_FIELD_NUMBER: _ClassVar[int]
    LINES_Q_FIELD_NUMBER: _ClassVar[int]
    TILES_Q_FIELD_NUMBER: _ClassVar[int]
    columns: int
    rows: int
    across: int
    down: int
    lines: int
    tiles: int
    lines_q: int
    tiles_q: int
    def __init__(self, columns: _Optional[int] = ..., rows: _Optional[int] = ..., across: _Optional[int] = ..., down: _Optional[int] = ..., lines: _Optional[int] = ..., tiles: _Optional[int] = ..., lines_q: _Optional[int] = ..., tiles_q: _Optional[int] = ...) -> None: ...

class SetSelection(_message.Message):
    __slots__ = ("d",)
    D_FIELD_NUMBER: _ClassVar[int]
    d: int
    def __init__(self, d: _Optional[int] = ...) -> None: ...

class EveryField(_message.Message):
    __slots__ = ("epsilons",)
    EPSILONS_FIELD_NUMBER: _ClassVar[int]
    epsilons: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, epsilons: _Optional[_Iterable[int]] = ...) -> None: ...

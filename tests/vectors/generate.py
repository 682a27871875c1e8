"""Write the golden vectors, tests/vectors/v1/*.json, from the product's code: `python -m tests.vectors.generate`.

Inputs are listed here or spread by SHAKE-256 of a name, so that every run writes the same bytes. test_vectors.py
compares the committed files with this module, with independent.py and with the numpy twins.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Set
from itertools import accumulate
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ldp_client.collection import Collection, Schedule
from ldp_client.errors import InvalidSpec, PolicyRefused
from ldp_client.mechanisms import (
    MECHANISMS,
    bounded_number,
    composed_response,
    hierarchy,
    set_selection,
    shifted_channel,
    subset_selection,
)
from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.compiled_channel import CompiledChannel
from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import Response
from ldp_client.mechanisms.records.averaged_table import AveragedTable
from ldp_client.mechanisms.records.every_field import EveryField
from ldp_client.mechanisms.records.sampled_grid import SampledGrid
from ldp_client.mechanisms.records.sampled_table import SampledTable, parameters_of
from ldp_client.mechanisms.shared.axis import Axis
from ldp_client.mechanisms.shared.team_sketch import TeamSketch
from ldp_client.protocol import packing
from ldp_client.protocol.domain import (
    Attributes,
    Categories,
    Domain,
    Field,
    Integers,
    Item,
    Record,
    Sets,
    Strings,
    YesNo,
)
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.hashing import KWiseHash, PairwiseHash
from ldp_client.protocol.permutation import BlockPermutation
from ldp_client.protocol.sealing import seal_info, seal_suite, sealed_bytes
from ldp_client.protocol.stream import expand
from ldp_client.protocol.v1 import collector_pb2 as pb
from ldp_client.sending.transport import ListPart
from ldp_client.trust.list_heads import cosign
from ldp_client.trust.merkle import Tree
from ldp_client.trust.signed_list import EMPTY_HEAD, SIGNED_LIST, SignedList, extended_head, verify_head, verify_list
from ldp_server.sealing.keys import SealingKey
from simulator.reproductions import genprot
from tests.vectors import independent, malformed

FOLDER = Path(__file__).with_name("v1")
VERSION = 1
N = 1 << 64
SEEDS = (bytes(range(32)), hashlib.sha256(b"another seed").digest())

CITIES = Categories(
    ("Zürich", "東京", "São Paulo", "München", "Mu\u0308nchen", "🦔", "\u202eabc", " ", "\x00", "A" * 256)
)
LIMITS: dict[str, Any] = {"opens": (1 << 40) - 1, "closes": 1 << 40, "nonce": 65535}
NOVEMBER = {"opens": 1_793_491_200, "closes": 1_796_083_200}
SHORTEST = {"opens": 0, "closes": 1}


_make = Collection.create
_WEEKLY, _LONGEST = Schedule(604_800, 52), Schedule(1 << 40, 1 << 20)
_PAGES = Categories(tuple(f"page {i}" for i in range(300)))

COLLECTIONS: dict[str, Collection] = {
    "yes-no": _make("Dark mode?", Categories(("yes", "no")), "randomized-response", "1", **NOVEMBER),
    "one-name": _make("?", Categories(("x",)), "randomized-response", "0.01", **SHORTEST),
    "cities": _make("Où habitez-vous ? 🏠", CITIES, "randomized-response", "2.25", **NOVEMBER, schedule=_WEEKLY),
    "cities-linear": _make("Wo?", CITIES, "linear-hash", "0.5", **NOVEMBER, parameters={"q": 2, "t": 4}, nonce=1),
    "cities-hashed": _make("Wo?", CITIES, "hashtogram", "3", **LIMITS, parameters={"rows": 3, "q": 2, "t": 1}),
    "pages": _make("Which page?", _PAGES, "linear-hash", "1.5", **NOVEMBER, parameters={"q": 7, "t": 3}),
    "byte": _make("One byte", Strings(1), "randomized-response", "0.1", **NOVEMBER, schedule=Schedule(60, 1)),
    "two-bytes": _make("Two", Strings(2), "linear-hash", "1", **NOVEMBER, parameters={"q": 2, "t": 17}),
    "words": _make("A word", Strings(32), "hashtogram", "1", **NOVEMBER, parameters={"rows": 16, "q": 3, "t": 10}),
    "urls": _make("x" * 4096, Strings(1024), "hashtogram", "20", **LIMITS, parameters={"rows": 128, "q": 2, "t": 24}),
    "tabs": _make(
        "How many tabs are open?",
        Integers(0, 1000),
        "linear-hash",
        "1",
        opens=1_790_000_000,
        closes=1_800_000_000,
        parameters={"q": 5, "t": 5},
    ),
    "tabs-nonce": _make(
        "How many tabs are open?",
        Integers(0, 1000),
        "hashtogram",
        "1",
        opens=1_790_000_000,
        closes=1_800_000_000,
        parameters={"rows": 4096, "q": 3, "t": 5},
        nonce=300,
    ),
    "signed": _make("°C\n\t", Integers(-40, 101), "randomized-response", "1.123456789", **NOVEMBER),
    "most-answers": _make("Many", Integers(1, (1 << 20) - 1), "randomized-response", "0.01", **NOVEMBER),
    "largest-prime": _make(
        "Prime",
        Integers(-(1 << 63), 1_048_572),
        "linear-hash",
        "13.8",
        **LIMITS,
        schedule=_LONGEST,
        parameters={"q": 1_048_573, "t": 1},
    ),
    "prime-squared": _make(
        "Prime", Integers(7, 16_000_000), "linear-hash", "8", **NOVEMBER, parameters={"q": 4093, "t": 2}
    ),
    "all-integers": _make(
        "Any",
        Integers(-(1 << 63), N - 1),
        "hashtogram",
        "0.7",
        **SHORTEST,
        parameters={"rows": 1, "q": 251, "t": 3},
    ),
    "high-integers": _make(
        "High", Integers((1 << 63) - 1, N - 1), "hashtogram", "4", **LIMITS, parameters={"rows": 7, "q": 11, "t": 2}
    ),
}
"""Every domain with every mechanism, and limits of every field."""


def spread(name: str, bits: int) -> int:
    """A fixed number of at most `bits` bits that looks random."""
    return int.from_bytes(hashlib.shake_256(name.encode()).digest((bits + 7) // 8), "big") & ((1 << bits) - 1)


def number(value: int) -> int | str:
    """A number as JSON: from 2^53 on as a string in base 16, since many readers would round it."""
    return value if abs(value) < 1 << 53 else hex(value)


def numbers(values: Any) -> list[int | str]:
    """Many of them."""
    return [number(value) for value in values]


def tagged(item: Item) -> dict[str, Any] | None:
    """An item as JSON, with its type."""
    if item is None:
        return None
    if isinstance(item, Set):
        return {"attributes": sorted(item)}
    if isinstance(item, Mapping):
        return {"record": {name: value if isinstance(value, bool) else tagged(value) for name, value in item.items()}}
    if isinstance(item, str):
        return {"text": item}
    return {"integer": number(item)} if isinstance(item, int) else {"hex": item.hex()}


def items_of(domain: Domain) -> list[Item]:
    """Items at every edge, some in the middle, and some that are outside."""
    if isinstance(domain, Categories):
        return [None, *domain.names[:10], domain.names[-1], "", "Munchen", domain.names[0] + " "]
    if isinstance(domain, Integers):
        first, last = domain.lowest, domain.highest
        inside = [first, last, first + domain.count // 2, first + spread("item", 64) % domain.count]
        return [None, *inside, first - 1, last + 1, 1 << 70, -(1 << 70)]
    edges = [b"", b"\x00", b"\xff", b"a", b"\x00" * domain.max_bytes, b"\xff" * domain.max_bytes]
    outside = [b"\x00" * (domain.max_bytes + 1), "z" * (domain.max_bytes + 1)]
    texts = [text for text in ("a", "é", "日本", "hedgehog", "hedgehogs") if len(text.encode()) <= domain.max_bytes]
    return [None, *edges, *texts, *outside]


def collection_vectors() -> Iterator[dict[str, Any]]:
    for name, collection in COLLECTIONS.items():
        domain, randomizer = collection.domain, collection.randomizer
        schedule = collection.schedule
        yield {
            "name": name,
            "text": collection.question,
            "domain": {key: number(v) if isinstance(v, int) else v for key, v in domain.describe().items()},
            "epsilon": collection.epsilon.text,
            "mechanism": {"name": randomizer.name, **randomizer.parameters()},
            "schedule": {"period_seconds": schedule.period_seconds, "reports": schedule.reports} if schedule else None,
            "nonce": collection.nonce,
            "window": {"opens": collection.opens, "closes": collection.closes},
            "spec": collection.spec_bytes.hex(),
            "id": collection.id.hex(),
            "question_id": collection.question_id.hex(),
            "seed": collection.seed.hex(),
            "size": number(domain.size),
            "bits": domain.bits,
            "words": randomizer.words,
            "bound": randomizer.bound,
            "report_bytes": randomizer.report_bytes,
        }


def relay_vectors() -> Iterator[dict[str, Any]]:
    """Some of the collections with a relay: another id, the same question. Then specs that must be refused."""
    for name, smallest in (("yes-no", 2), ("cities", 1000), ("words", 127), ("tabs", 128), ("tabs-nonce", 1 << 20)):
        plain = COLLECTIONS[name]
        data = plain.to_dict() | {"id": None, "relay": {"smallest_batch": smallest}}
        collection = Collection.from_dict(data)
        assert collection.question_id == plain.question_id
        yield {
            "collection": name,
            "smallest_batch": smallest,
            "spec": collection.spec_bytes.hex(),
            "id": collection.id.hex(),
            "question_id": collection.question_id.hex(),
        }
    for why, spec in malformed.RELAYS:
        yield {"why": why, "refused": spec.hex()}


def item_vectors() -> Iterator[dict[str, Any]]:
    for name, collection in COLLECTIONS.items():
        domain = collection.domain
        if name in ("urls", "cities-linear", "cities-hashed", "tabs-nonce"):
            continue
        for item in items_of(domain):
            yield {"collection": name, "item": tagged(item), "index": number(domain.index(item))}


def stream_vectors() -> Iterator[dict[str, Any]]:
    for seed in SEEDS:
        for label, length in (("a", 1), ("hashtogram/row/0", 64), ("hashtogram/row/4095", 24), ("x" * 255, 200)):
            yield {"seed": seed.hex(), "label": label, "bytes": expand(seed, label, length).hex()}


HASH_BITS = (1, 2, 31, 32, 33, 59, 60, 61, 63, 64, 65, 95, 96, 97, 128, 129, 257, 1000)
HASH_RANGES = (1, 2, 3, 1000, 1 << 16, 1_000_003, (1 << 31) + 1, (1 << 32) - 1, 1 << 32)


def hash_indexes(bits: int) -> list[int]:
    last = (1 << bits) - 1
    return sorted({0, 1, last, last - 1, 1 << (bits - 1), *(spread(f"index {bits} {i}", bits) for i in range(3))})


def hash_vectors() -> Iterator[dict[str, Any]]:
    for i, bits in enumerate(HASH_BITS):
        seed, label, indexes = SEEDS[i % 2], f"vectors/{bits}", hash_indexes(bits)
        families: dict[str, list[list[int]]] = {}
        for k in (0, 1, 2, 4, 9):
            family = []
            for size in HASH_RANGES if k in (0, 4) else HASH_RANGES[3:4]:
                hash_ = KWiseHash(seed, label, bits, k, size) if k else PairwiseHash(seed, label, bits, size)
                family.append([size, *map(hash_, indexes)])
            families[f"{k}-wise" if k else "pairwise"] = family
        yield {"seed": seed.hex(), "label": label, "bits": bits, "indexes": numbers(indexes), **families}


PERMUTATION_BITS = (
    *(2, 3, 4, 5, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 66, 96, 127, 128, 129, 130, 191, 192, 193),
    *(255, 256, 257, 320, 385, 511, 512, 513, 1000, 1023, 1024),
)


def permutation_vectors() -> Iterator[dict[str, Any]]:
    for i, bits in enumerate(PERMUTATION_BITS):
        seed, label = SEEDS[i % 2], f"vectors/{bits}"
        permutation = BlockPermutation(seed, label, bits)
        blocks = list(range(1 << bits)) if bits <= 4 else hash_indexes(bits)
        images = [permutation.forward(block) for block in blocks]
        yield {
            "seed": seed.hex(),
            "label": label,
            "bits": bits,
            "blocks": numbers(blocks),
            "images": numbers(images),
        }


EPSILONS = (
    *("0.01", "0.010000001", "0.02", "0.05", "0.1", "0.125", "0.25", "0.3", "0.5", "0.69314718", "0.693147181"),
    *("0.7", "0.9", "0.999999999", "1", "1.000000001", "1.1", "1.098612289", "1.5", "2", "2.25", "2.302585093", "3"),
    *("3.141592654", "4", "5", "6.5", "7", "8", "9", "9.9", "10", "11.25", "12", "13.8", "14", "15.5", "16", "17"),
    *("18.123456789", "19", "19.999999999", "20"),
)


def epsilon_vectors() -> Iterator[dict[str, Any]]:
    for text in EPSILONS:
        e_low = Epsilon(text).e_low * N
        yield {"epsilon": text, "e_low_times_2^64": number(int(e_low))}


RESPONSE_EPSILONS = ("0.01", "0.1", "0.5", "1", "2.25", "8", "13.8", "20")
RESPONSE_SIZES = (2, 3, 4, 5, 16, 257, 1000, (1 << 16) + 1, 1 << 20)


def response_words(response: Response) -> list[int]:
    """Words on both sides of every boundary, and one in the middle of each part."""
    t, w, leftover = response.truth, response.lie, N - response.spare
    middle, lies = (t + leftover) // 2, response.k - 1
    edges = {
        0,
        t // 2,
        t - 1,
        t,
        t + lies - 1,
        t + lies,
        t + w - 1,
        t + w,
        middle,
        leftover - 1,
        leftover,
        leftover + 1,
    }
    return sorted({word for word in edges if word < N} | {N - 1})


def response_vectors() -> Iterator[dict[str, Any]]:
    for text in RESPONSE_EPSILONS:
        for k in RESPONSE_SIZES:
            response = Response(Epsilon(text), k)
            words = response_words(response)
            truths = sorted({0, 1, k - 1})
            yield {
                "epsilon": text,
                "k": k,
                "T": number(response.truth),
                "W": number(response.lie),
                "leftover": response.spare,
                "words": numbers(words),
                "answers": {str(truth): [response.choose(word, truth) for word in words] for truth in truths},
            }


def word_lines(randomizer: Randomizer) -> Iterator[list[int]]:
    """Lines of words: every boundary of the answer's word, with first, last and middling public choices."""
    if isinstance(randomizer, Hashtogram):
        inner, rows = randomizer.inner, randomizer.rows
        middle = [-(-(rows // 2 * N) // rows), N - 1, 0, spread("row", 64)]
        for i, line in enumerate(word_lines(inner)):
            yield [middle[i % 4], *line]
    elif isinstance(randomizer, LinearHash):
        q, t, points = randomizer.q, randomizer.t, randomizer.points
        starts = {(q**s - 1) // (q - 1) for s in (0, 1, t // 2, t - 1)}
        first = sorted(-(-point * N // points) for point in starts | {points // 2, points - 1} if point < points)
        chosen = [*first, *(word - 1 for word in first[1:]), N - 1, spread("point", 64)]
        for word in chosen:
            yield [word, 0]
        for i, word in enumerate(response_words(randomizer.response)):
            yield [chosen[5 * i % len(chosen)], word]
    else:
        for word in response_words(randomizer.response):
            yield [word]


def report_vectors() -> Iterator[dict[str, Any]]:
    for name, collection in COLLECTIONS.items():
        items = items_of(collection.domain)
        for i, words in enumerate(word_lines(collection.randomizer)):
            for item in (items[i % len(items)], items[(i + 5) % len(items)]):
                if isinstance(item, str | bytes) and len(item) > 256:
                    continue
                report = collection.randomizer.randomize(collection.domain.index(item), words)
                payload = collection.randomize(item, words).hex()
                yield {
                    "collection": name,
                    "item": tagged(item),
                    "words": numbers(words),
                    "report": report,
                    "payload": payload,
                }


def payload_vectors() -> Iterator[dict[str, Any]]:
    for bound in (2, 3, 255, 256, 257, 3905, 1 << 16, (1 << 16) + 1, 1 << 24, (1 << 24) + 1, (1 << 32) - 256, 1 << 32):
        reports = [0, bound - 1, bound // 2, *(spread(f"report {i}", 64) % bound for i in range(4))]
        width = ((bound - 1).bit_length() + 7) // 8
        yield {"bound": bound, "reports": reports, "payload": packing.pack(reports, width).hex()}


def refused_payload_vectors() -> Iterator[dict[str, Any]]:
    """A payload is its `hex`, repeated `times` times."""
    for bound, chunk, times, reason in (
        (2, "", 1, "EMPTY_BATCH"),
        (1 << 32, "", 0, "EMPTY_BATCH"),
        (2, "00", 250_001, "BATCH_TOO_LARGE"),
        (1000, "0000", 125_001, "BATCH_TOO_LARGE"),
        (1000, "000000", 100_001, "BATCH_TOO_LARGE"),
        (1000, "00", 1, "WRONG_LENGTH"),
        (1000, "e70300", 1, "WRONG_LENGTH"),
        (1 << 24, "00000000", 1, "WRONG_LENGTH"),
        (1 << 32, "ffffff", 1, "WRONG_LENGTH"),
        (1 << 32, "ffffffffff", 1, "WRONG_LENGTH"),
        (2, "02", 1, "REPORT_OUT_OF_RANGE"),
        (2, "000180", 1, "REPORT_OUT_OF_RANGE"),
        (1000, "e803", 1, "REPORT_OUT_OF_RANGE"),
        (1000, "e703ffff", 1, "REPORT_OUT_OF_RANGE"),
        ((1 << 16) + 1, "010001", 1, "REPORT_OUT_OF_RANGE"),
        ((1 << 32) - 256, "00ffffff", 1, "REPORT_OUT_OF_RANGE"),
    ):
        yield {"bound": bound, "hex": chunk, "times": times, "reason": reason}


# --- Attributes, numbers, subsets: a file of collections and their reports -------------------------------------------

LINES = 12


def structured_collections() -> dict[str, Collection]:
    """Every mechanism of the file with small, usual and extreme parameters."""
    make = Collection.create
    habits = Attributes(("smokes", "drives", "votes", "läuft", "🦔"))
    many = Attributes(tuple(f"a{i}" for i in range(20)))
    hours, signed, wide = Integers(0, 24), Integers(-500, 1001), Integers(-(1 << 63), N - 1)
    plain = {
        "habits": (habits, "composed-response", "2", composed_response.design("2", 5)),
        "habits-shell": (habits, "composed-response", "6", {"low": 0, "high": 5, "flip": 1 << 46}),
        "one-habit": (Attributes(("x",)), "composed-response", "0.1", composed_response.design("0.1", 1)),
        "many": (many, "composed-response", "4", composed_response.design("4", 20, shell=(4, 9))),
        "sampled": (habits, "sampled-attribute", "1", {}),
        "sampled-many": (many, "sampled-attribute", "0.01", {}),
        "hours": (hours, "bounded-number", "1", bounded_number.design("1", presence=32)),
        "hours-wide": (hours, "bounded-number", "20", {"answers": 256, "window": 10, "presence": 255}),
        "signed": (signed, "bounded-number", "3", bounded_number.design("3")),
        "any-number": (wide, "bounded-number", "0.01", {"answers": 5, "window": 2, "presence": 0}),
        "tree": (signed, "hierarchy", "1", {"branching": 4, "q": 3}),
        "tree-two": (Integers(7, 2), "hierarchy", "5", {"branching": 1024, "q": 2}),
        "tree-deep": (Integers(-8, 100_000), "hierarchy", "2", {"branching": 2, "q": 11}),
        "pure-number": (hours, "genprot", "1", genprot.design("1")),
        "pure-choice": (Categories(("a", "b", "c")), "genprot", "0.5", genprot.design("0.5")),
    }
    return {
        name: make(f"{name}?", domain, mechanism, epsilon, **NOVEMBER, parameters=parameters)
        for name, (domain, mechanism, epsilon, parameters) in plain.items()
    }


def subset_collections() -> dict[str, Collection]:
    """Subset selection with small, usual and extreme parameters."""
    pages = Categories(tuple(f"page {i}" for i in range(63)))
    plain = {
        "two": (Categories(("x",)), "1", 1),
        "three": (Categories(("a", "b")), "0.01", 1),
        "six": (Categories(("a", "b", "c", "d", "e")), "1", 2),
        "eight": (Integers(-3, 7), "20", 4),
        "pages": (pages, "1", 17),
        "pages-half": (pages, "0.01", 32),
        "pages-few": (pages, "3", 3),
        "sixty-six": (Integers(0, 65), "0.5", 33),
        "bytes": (Integers(0, 255), "2", 11),
        "bytes-one": (Integers(0, 255), "10", 1),
    }
    return {
        name: Collection.create(f"{name}?", domain, "subset-selection", epsilon, **NOVEMBER, parameters={"d": d})
        for name, (domain, epsilon, d) in plain.items()
    }


def set_collections() -> dict[str, Collection]:
    """Sets of which all are whole, and that may be cut; more items than an index of one word has; all of 63 bits."""
    plain = {
        "sets-all": (Sets(("tea", "東京"), 2), "1", 1),
        "sets-few": (Sets(tuple("abcde"), 2), "2", 3),
        "sets-cut": (Sets(tuple(f"page {i}" for i in range(30)), 5), "1", 2),
        "sets-long": (Sets(tuple(f"app {i}" for i in range(150)), 3), "0.5", 12),
        "sets-most": (Sets(tuple(f"{i}" for i in range(62)), 3), "0.1", 33),
    }
    return {
        name: Collection.create(f"{name}?", domain, "set-selection", epsilon, **NOVEMBER, parameters={"d": d})
        for name, (domain, epsilon, d) in plain.items()
    }


def field_collections() -> dict[str, Collection]:
    """Every mechanism of F_q with the powers of 2."""
    make, wide = Collection.create, Integers(-(1 << 63), N - 1)
    cities = Categories(tuple(f"city {i}" for i in range(60)))
    long = Integers(0, (1 << 24) - 1)
    plain = {
        "four-one": (Categories(("a", "b", "c")), "linear-hash", "1", {"q": 4, "t": 1}),
        "four-cities": (cities, "linear-hash", "1", {"q": 4, "t": 3}),
        "four-longest": (long, "linear-hash", "0.01", {"q": 4, "t": 12}),
        "four-hashed": (wide, "hashtogram", "1", {"rows": 16, "q": 4, "t": 6}),
        "four-tree": (Integers(-500, 1001), "hierarchy", "1", {"branching": 4, "q": 4}),
        "eight-one": (Categories(tuple("abcdefg")), "linear-hash", "2", {"q": 8, "t": 1}),
        "eight-cities": (cities, "linear-hash", "2", {"q": 8, "t": 2}),
        "eight-longest": (long, "linear-hash", "20", {"q": 8, "t": 8}),
        "eight-hashed": (wide, "hashtogram", "2", {"rows": 3, "q": 8, "t": 4}),
        "eight-tree": (Integers(7, 99), "hierarchy", "2", {"branching": 5, "q": 8}),
    }
    return {
        name: make(f"{name}?", domain, mechanism, epsilon, **NOVEMBER, parameters=parameters)
        for name, (domain, mechanism, epsilon, parameters) in plain.items()
    }


def record_collections() -> dict[str, Collection]:
    """One table of a record: every response, parities, equal and unequal weights, the most words and the fewest."""
    yes, asked = YesNo(none_is_no=True), YesNo()
    color, age = Categories(("red", "green", "blue")), Integers(-2, 7)
    bits = Record(tuple(Field(f"b{i}", yes) for i in range(16)))
    person = Record((Field("member", asked), Field("color", color), Field("age", age), Field("town", Integers(0, 11))))
    pairs = [1 << i | 1 << j for i in range(16) for j in range(i)]
    parities = sorted([(1 << i, 31, 1, 0) for i in range(16)] + [(one, 8, 1, 0) for one in pairs])
    singles = [(1 << i, 1, 0, 0) for i in range(16)]
    mixed = [(1, 5, 0, 0), (3, 1, 2, 3), (5, 7, 3, 4), (9, 2, 3, 3), (14, (1 << 32) - 16, 3, 5), (15, 1, 3, 2)]
    plain = {
        "parities": (bits, "1", parities),
        "singles": (bits, "0.5", singles),
        "responses": (person, "2", mixed),
        "one-table": (person, "10", [(6, 1, 2, 1)]),
        "alone": (Record((Field("age", age),)), "0.01", [(1, 1, 2, 4)]),
    }
    return {
        name: Collection.create(
            f"{name}?", domain, "sampled-table", epsilon, **NOVEMBER, parameters=parameters_of(tables)
        )
        for name, (domain, epsilon, tables) in plain.items()
    }


def protected_collections() -> dict[str, Collection]:
    """Every field at an epsilon of its own: equal ones, very unequal ones, one field, words left over, many fields."""
    yes, color, age = YesNo(none_is_no=True), Categories(("red", "green", "blue")), Integers(-2, 7)
    person = Record((Field("member", YesNo()), Field("color", color), Field("age", age)))
    wide = Record((Field("year", Integers(1990, 700)), Field("in", yes)))
    bits = Record(tuple(Field(f"b{i}", yes) for i in range(12)))
    plain = {
        "every-person": (person, "3.25", (500_000_000, 2_000_000_000, 750_000_000)),
        "every-wide": (wide, "5.01", (10_000_000, 5_000_000_000)),
        "every-alone": (Record((Field("age", age),)), "1", (1_000_000_000,)),
        "every-billionth": (wide, "0.333333334", (123_456_789, 209_876_545)),
        "every-bit": (bits, "12", (1_000_000_000,) * 12),
    }
    return {
        name: Collection.create(f"{name}?", record, "every-field", epsilon, **NOVEMBER, parameters={"epsilons": each})
        for name, (record, epsilon, each) in plain.items()
    }


def averaged_collections() -> dict[str, Collection]:
    """A number with the cell of a table: randomized response and linear hash, the number at each place."""
    color, age = Categories(("red", "green", "blue")), Integers(-2, 8)
    first = Record((Field("age", age), Field("color", color)))
    middle = Record((Field("member", YesNo()), Field("age", Integers(0, (1 << 40) + 1)), Field("color", color)))
    last = Record((Field("town", Integers(1, 60)), Field("age", Integers(5, 2))))
    plain: dict[str, tuple[Record, str, int, int]] = {
        "average-first": (first, "1", 0, 0),
        "average-middle": (middle, "0.5", 1, 3),
        "average-last": (last, "2", 1, 8),
        "average-response": (middle, "5", 1, 0),
        "average-two": (last, "0.01", 1, 2),
    }
    return {
        name: Collection.create(
            f"{name}?", record, "averaged-table", epsilon, **NOVEMBER, parameters={"number": number, "q": q}
        )
        for name, (record, epsilon, number, q) in plain.items()
    }


def grid_collections() -> dict[str, Collection]:
    """Places on a map: every response, sides that do not divide the range, and tiles alone."""
    even = Record((Field("x", Integers(0, 8)), Field("y", Integers(-4, 8))))
    odd = Record((Field("x", Integers(-3, 1001)), Field("y", Integers(10, (1 << 30) + 1))))
    names = ("columns", "rows", "across", "down", "lines", "tiles", "lines_q", "tiles_q")
    plain: dict[str, tuple[Record, str, tuple[int, ...]]] = {
        "grid-even": (even, "1", (8, 4, 4, 2, 1, 2, 3, 4)),
        "grid-odd": (odd, "2", (30, 12, 6, 4, 3, 5, 8, 0)),
        "grid-tiles": (odd, "0.5", (1, 1, 7, 5, 0, 1, 0, 2)),
        "grid-lines": (even, "4", (8, 8, 1, 1, 65536, 1, 0, 0)),
    }
    return {
        name: Collection.create(
            f"{name}?", record, "sampled-grid", epsilon, **NOVEMBER, parameters=dict(zip(names, numbers, strict=True))
        )
        for name, (record, epsilon, numbers) in plain.items()
    }


def channel_collections() -> dict[str, Collection]:
    """Compiled channels: two elements and many, with and without distances, more reports than elements."""
    fair, less = Response(Epsilon("1"), 3), N // 500
    line = (40, 12, 6, 6, 20, 22, 11, 11, 11, 11, 22, 20, 6, 6, 12, 40)
    close = [N // 64 + (y * x % 7 - 3) * (N >> 18) for x in (1, 2, 3) for y in range(64)]
    for start in (0, 64, 128):
        close[start] += N - sum(close[start : start + 64])
    plain: dict[str, tuple[Domain, str, tuple[int, ...], tuple[int, ...]]] = {
        "channel-two": (Integers(1, 1), "0.01", (N // 2 + less, N // 2 - less, N // 2 - less, N // 2 + less), ()),
        "channel-three": (Categories(("a", "b")), "1", tuple(fair.weight(i // 3, i % 3) for i in range(9)), ()),
        "channel-line": (Integers(-1, 3), "2.1", tuple(weight << 58 for weight in line), (1, 2, 3, 1, 2, 1)),
        "channel-wide": (Integers(0, 1), "1.5", tuple(w << 58 for w in (20, 24, 12, 8, 10, 12, 24, 18)), ()),
        "channel-many": (Integers(0, 2), "0.01", tuple(close), (7, 8, 9)),
    }
    return {
        name: Collection.create(
            f"{name}?", domain, "compiled-channel", epsilon, **NOVEMBER,
            parameters={"weights": weights, "distances": distances},
        )
        for name, (domain, epsilon, weights, distances) in plain.items()
    }  # fmt: skip


def shift_collections() -> dict[str, Collection]:
    """Shifted channels: lines, a ring, one place, and records of them; hand-made tables that are not symmetric."""
    few = 1 << 58
    line = shifted_channel.parameters_of(
        [
            Axis(
                False,
                1,
                (24 * few, 16 * few),
                tuple(few * w for w in (19, 12, 16, 8, 9)),
                (22 * few, 20 * few, 22 * few),
            )
        ]
    )
    many, hours = Integers(-30, 60), Record((Field("day", YesNo()), Field("hour", Integers(0, 24))))
    town = Record((Field("x", Integers(0, 12)), Field("y", Integers(3, 9)), Field("in", YesNo(none_is_no=True))))
    plain: dict[str, tuple[Domain, str, dict[str, Any]]] = {
        "shift-line": (Integers(7, 3), "1.5", line),
        "shift-many": (many, "4", shifted_channel.design("4", many)),
        "shift-ring": (Categories(tuple("abcdefg")), "0.7", shifted_channel.design("0.7", Integers(1, 7), rings=(1,))),
        "shift-hours": (hours, "2", shifted_channel.design("2", hours, rings=(0, 1), steps=(5, 1))),
        "shift-town": (town, "8", shifted_channel.design("8", town, steps=(2, 3, 1))),
    }
    return {
        name: Collection.create(f"{name}?", domain, "shifted-channel", epsilon, **NOVEMBER, parameters=parameters)
        for name, (domain, epsilon, parameters) in plain.items()
    }


def few_items(domain: Domain) -> list[Item]:
    """Items at every edge, one in the middle, and some that are outside."""
    if isinstance(domain, Record):
        held = [domain.item(spread(f"record {i}", 128) % domain.size) for i in range(4)]
        outside = {field.name: None if isinstance(field.domain, YesNo) else 1 << 40 for field in domain.fields}
        outside |= {field.name: "?" for field in domain.fields if isinstance(field.domain, Categories)}
        return [None, *held, domain.item(domain.size - 1), outside]
    if isinstance(domain, Attributes):
        names = domain.names
        return [None, frozenset(), frozenset(names), frozenset(names[:1]), frozenset(names[::2]), frozenset({"?"})]
    if isinstance(domain, Sets):
        names, most = domain.names, domain.most
        held = [frozenset(names[:most]), frozenset(names[-most - 1 :]), frozenset(names), frozenset(names[1::2])]
        return [None, *held, frozenset(names[1:2]), frozenset({"?", names[0]})]
    if isinstance(domain, Integers):
        inside = [domain.lowest, domain.highest, domain.lowest + spread("number", 64) % domain.count]
        return [None, *inside, domain.lowest - 1, domain.highest + 1]
    return [None, domain.item(1), domain.item(domain.size - 1), "elsewhere"]


def axis_words(maker: shifted_channel.ShiftedChannel) -> set[int]:
    """The first, middle and last boundaries of every table of a shifted channel."""
    lists = [
        one for axis in maker.axes for one in ([*accumulate(axis.moves)], [*accumulate(axis.empties)], axis.absent)
    ]
    marks = {end for one in lists for end in (*one[:2], one[len(one) // 2], *one[-3:])}
    return {mark - less for mark in marks for less in (0, 1)}


def record_words(maker: Randomizer) -> set[int]:
    """Words on both sides of the boundaries of a mechanism over records."""
    found = set[int]()
    if isinstance(maker, SampledGrid):
        ends = (maker.lines, 2 * maker.lines)
        found |= {-(-end * N // maker.total) - less for end in ends for less in (0, 1)}
        found |= {one.response.truth for one in maker.responses}
    elif isinstance(maker, AveragedTable):
        steps = [-(-v * N // maker.reach) for v in (1, maker.reach // 2, maker.reach - 1)]
        found |= {word for step in (*steps, maker.inner.response.truth) for word in (step - 1, step)}
    elif isinstance(maker, EveryField):
        for one in maker.responses[:3]:
            lies = one.truth + (one.k - 1) * one.lie
            found |= {one.truth - 1, one.truth, lies - 1, lies}
    elif isinstance(maker, SampledTable):
        found |= {-(-end * N // maker.ends[-1]) - less for end in maker.ends[:4] for less in (0, 1)}
        found |= {one.inner.response.truth for one in maker.tables[:5] if not hasattr(one.inner, "d")}
    return found


def boundary_words(collection: Collection) -> list[int]:
    """Words on both sides of every boundary of the mechanism's law."""
    maker = collection.randomizer
    found = {0, N - 1, N // 2, N // 3}
    if isinstance(maker, subset_selection.SubsetSelection | set_selection.SetSelection):
        found |= {maker.truth - 1, maker.truth, N // maker.holding, N // maker.others}
    elif isinstance(maker, CompiledChannel):
        limits = [2 * N - offset for offset in {*maker.offsets[0][:3], *maker.offsets[-1][-3:]}]
        found |= {word for limit in limits for word in (limit - 1, limit)}
    elif isinstance(maker, shifted_channel.ShiftedChannel):
        found |= axis_words(maker)
    elif isinstance(maker, SampledGrid | AveragedTable | EveryField | SampledTable):
        found |= record_words(maker)
    elif isinstance(maker, composed_response.ComposedResponse):
        steps = [*maker._starts, *(start + weight for start, weight in zip(maker._starts, maker.weights, strict=False))]
        found |= {word for step in steps for word in (step - 1, step)}
    elif isinstance(maker, bounded_number.BoundedNumber):
        law = maker.law
        steps = [law.window * law.truth, law.used, law.truth, maker.response.truth]
        found |= {word for step in steps for word in (step - 1, step, step + 1)}
    elif isinstance(maker, hierarchy.Hierarchy):
        found |= {-(-level * N // len(maker.levels)) for level in range(len(maker.levels))}
        found |= {level.response.truth for level in maker.levels}
    elif isinstance(maker, LinearHash | Hashtogram):
        inner = maker if isinstance(maker, LinearHash) else maker.inner
        truth, lies = inner.response.truth, (inner.q - 1) * inner.response.lie
        found |= {truth - 1, truth, truth + 1, truth + 2, truth + lies - 1, truth + lies}
        starts = {(inner.q**s - 1) // (inner.q - 1) for s in range(inner.t)}
        found |= {-(-place * N // inner.points) for place in starts}
    return sorted(word for word in found if 0 <= word < N)


def structured_vectors(collections: dict[str, Collection]) -> Iterator[dict[str, Any]]:
    """A collection, then its reports."""
    for name, collection in collections.items():
        maker, items, marks = collection.randomizer, few_items(collection.domain), boundary_words(collection)
        yield {
            "name": name,
            "domain": {key: number(v) if isinstance(v, int) else v for key, v in collection.domain.describe().items()},
            "epsilon": collection.epsilon.text,
            "mechanism": maker.name,
            "parameters": {
                key: numbers(value) if isinstance(value, tuple) else number(value)
                for key, value in maker.parameters().items()
            },
            "spec": collection.spec_bytes.hex(),
            "id": collection.id.hex(),
            "seed": collection.seed.hex(),
            "bound": number(maker.bound),
            "words": maker.words,
        }
        for line in range(max(LINES, len(marks)) if maker.words < 4 or maker.name == "set-selection" else 5):
            words = [spread(f"{name} {line} {i}", 64) for i in range(maker.words)]
            if line < len(marks):
                words[(line + maker.words - 1) % maker.words] = marks[line]
            item = items[line % len(items)]
            yield {
                "collection": name,
                "item": tagged(item),
                "index": number(collection.domain.index(item)),
                "words": numbers(words),
                "payload": collection.randomize(item, words).hex(),
            }


# --- The signed list ------------------------------------------------------------------------------------------------

LIST_KEY = Ed25519PrivateKey.from_private_bytes(SEEDS[0])
NEXT_LIST_KEY = SEEDS[1]


def listed_ids() -> dict[str, list[bytes]]:
    """Lists that one operator might sign, by name; not all of them may follow each other."""
    a, b, c, d, e = (collection.id for collection in list(COLLECTIONS.values())[:5])
    return {
        "empty": [],
        "one": [a],
        "two": [a, b],
        "three": [a, b, c],
        "four": [a, b, c, d],
        "next-key": [a, b, c, d],
        "four-reordered": [b, a, c, d],
        "four-replaced": [a, e, c, d],
        "five-without-two": [a, c, d, e, b],
    }


def signed_list_vectors() -> Iterator[dict[str, Any]]:
    """Each list with its head, its signature, and the lists of the file that it may follow."""
    lists = {name: list_part(ids, NEXT_LIST_KEY if name == "next-key" else b"") for name, ids in listed_ids().items()}
    for name, part in lists.items():
        body = pb.SignedListBody.FromString(part.list_bytes)
        yield {
            "name": name,
            "ids": [one.hex() for one in listed_ids()[name]],
            "serial": body.serial,
            "head": body.head.hex(),
            "next_key": body.next_key.hex(),
            "list_bytes": part.list_bytes.hex(),
            "public_key": part.public_key.hex(),
            "signature": part.signature.hex(),
            "may_follow": [other for other, held in lists.items() if accepted(part, accepted(held, None))],
        }


def list_part(ids: list[bytes], following: bytes) -> ListPart:
    """A whole list as a server sends it."""
    packed = b"".join(ids)
    body = pb.SignedListBody(serial=len(ids), head=extended_head(EMPTY_HEAD, packed), next_key=following)
    data = body.SerializeToString(deterministic=True)
    return ListPart(packed, data, LIST_KEY.sign(SIGNED_LIST + data), LIST_KEY.public_key().public_bytes_raw())


def accepted(part: ListPart, previous: SignedList | None) -> SignedList | None:
    """What a device makes of a list that comes after the one that it holds; None: it refuses."""
    try:
        head = verify_head(part.list_bytes, part.signature, part.public_key, keys=[part.public_key], previous=previous)
        return verify_list(head, part.ids, previous=previous)
    except PolicyRefused:
        return None


# --- Sealed reports ---------------------------------------------------------------------------------------------------


def sealed_vectors() -> Iterator[dict[str, Any]]:
    """Sealed reports, from fixed ephemeral keys. The library draws its own, so they come from the second computation;
    what the product does with them is that it opens them.
    """
    private = hashlib.sha256(b"a collector key").digest()
    key = SealingKey(private, 0).public
    for name, token in (("yes-no", 0), ("cities", 0), ("words", 0), ("urls", 0), ("words", 81), ("words", 322)):
        collection, report = COLLECTIONS[name], spread(f"sealed {name}", 64) % COLLECTIONS[name].randomizer.bound
        plain = report.to_bytes(collection.randomizer.report_bytes, "little")
        plain += hashlib.shake_256(b"a token").digest(token)
        ephemeral = hashlib.sha256(f"ephemeral {name} {token}".encode()).digest()
        sealed = independent.seal(plain, collection.id, key.public_key, ephemeral)
        opened = seal_suite().decrypt(
            sealed[9:], X25519PrivateKey.from_private_bytes(private), info=seal_info(collection.id, key.id)
        )
        assert (opened, len(sealed)) == (plain, sealed_bytes(collection.randomizer.report_bytes, token))
        yield {
            "collection_id": collection.id.hex(),
            "private_key": private.hex(),
            "public_key": key.public_key.hex(),
            "key_id": key.id.hex(),
            "info": seal_info(collection.id, key.id).hex(),
            "ephemeral_private_key": ephemeral.hex(),
            "plaintext": plain.hex(),
            "sealed": sealed.hex(),
        }


# --- The tree over the signed list ----------------------------------------------------------------------------------

WITNESS_KEY = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"a witness").digest())
TREE_SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 13)


def tree_ids(size: int) -> list[bytes]:
    """The ids of the trees: SHA-256 of their numbers."""
    return [hashlib.sha256(number.to_bytes(8, "big")).digest() for number in range(size)]


def list_tree_vectors() -> Iterator[dict[str, Any]]:
    """Trees of some sizes: the signed list with its root, a witness's signature, and every proof."""
    signer = LIST_KEY.public_key().public_bytes_raw()
    for size in TREE_SIZES:
        ids, tree = tree_ids(size), Tree()
        for one in ids:
            tree.append(one)
        head = extended_head(EMPTY_HEAD, b"".join(ids))
        body = pb.SignedListBody(serial=size, head=head, root=tree.root()).SerializeToString(deterministic=True)
        yield {
            "size": size,
            "root": tree.root().hex(),
            "list_bytes": body.hex(),
            "public_key": signer.hex(),
            "signature": LIST_KEY.sign(SIGNED_LIST + body).hex(),
            "cosignature": cosign(WITNESS_KEY, signer, body).signature.hex(),
            "witness_key": WITNESS_KEY.public_key().public_bytes_raw().hex(),
            "inclusion": [[one.hex() for one in tree.inclusion(index)] for index in range(size)],
            "consistency": [[one.hex() for one in tree.consistency(first)] for first in range(size + 1)],
        }


def refused_proof_vectors() -> Iterator[dict[str, Any]]:
    """Consistency proofs from 6 to 13 ids that must be refused."""
    tree = Tree()
    for one in tree_ids(13):
        tree.append(one)
    good = tree.consistency(6)
    wrong = {
        "no hash": [],
        "the last one is missing": good[:-1],
        "the first one is missing": good[1:],
        "one too many": [*good, good[-1]],
        "another order": [*good[1:], good[0]],
        "a hash of 31 bytes": [good[0][:-1], *good[1:]],
        "a changed bit": [bytes([good[0][0] ^ 1]) + good[0][1:], *good[1:]],
        "of another size": tree.consistency(5),
        "too long": good * 8,
    }
    for name, proof in wrong.items():
        yield {"first": 6, "size": 13, "name": name, "proof": [one.hex() for one in proof]}


# --- Sketches of teams -----------------------------------------------------------------------------------------------

SKETCHES_FILE = Path(__file__).with_name("sketches-v1.json")
SEED = SEEDS[0]
EXPANDER = dict.fromkeys(("attempt", "bucket_bits"), 0) | {"chunk_bits": 16, "degree": 2, "hash_bits": 3}
EXPANDER |= dict.fromkeys(("oracle_q", "oracle_rows", "oracle_t"), 0)
EXPANDER |= {"q": 3, "symbol_pointers": 1, "t": 14, "teams": 5}
ITEM = {"symbol_pointers": 0, "hash_bits": 2}
SKETCHES: list[tuple[str, str, int, dict[str, int]]] = [
    ("expander-sketch", "1", 64, EXPANDER),
    ("expander-sketch", "4", 64, EXPANDER | ITEM | {"q": 47, "t": 4}),
    ("expander-sketch", "1", 65, EXPANDER | {"chunk_bits": 13, "teams": 6}),
    ("expander-sketch", "2", 129, EXPANDER | {"chunk_bits": 15, "teams": 10, "q": 7, "t": 8, "attempt": 7}),
    (
        "expander-sketch",
        "1",
        64,
        EXPANDER | ITEM | {"chunk_bits": 8, "teams": 12, "degree": 3, "bucket_bits": 3, "t": 13},
    ),
    ("expander-sketch", "0.5", 40, EXPANDER | ITEM | {"chunk_bits": 9, "teams": 9, "degree": 4, "t": 13}),
    ("tree-sketch", "1", 129, {"first_bits": 22, "step_bits": 14, "cell_bits": 22, "q": 3, "t": 14, "check_levels": 2}),
    ("tree-sketch", "1", 257, {"first_bits": 22, "step_bits": 14, "cell_bits": 22, "q": 3, "t": 14, "check_levels": 1}),
    ("prefix-tree", "2", 64, {"first_bits": 16, "step_bits": 8, "cell_bits": 22, "q": 7, "t": 8}),
    ("expander-sketch", "1", 64, EXPANDER | {"chunk_bits": 14, "hash_bits": 4, "teams": 6, "q": 4, "t": 11}),
    ("tree-sketch", "1", 129, {"first_bits": 22, "step_bits": 14, "cell_bits": 22, "q": 4, "t": 11, "check_levels": 2}),
    ("prefix-tree", "2", 64, {"first_bits": 16, "step_bits": 8, "cell_bits": 21, "q": 8, "t": 7}),
]


def _number(label: str, bits: int) -> int:
    return int.from_bytes(hashlib.shake_256(label.encode()).digest(64), "little") % (1 << bits)


def sketch_vectors() -> list[dict[str, Any]]:
    """Each sketch with some items: every team's cell, and reports."""
    out = []
    for name, epsilon, bits, wanted in SKETCHES:
        for attempt in range(wanted.get("attempt", 0), 1 << 12):
            parameters = wanted | ({"attempt": attempt} if "attempt" in wanted else {})
            try:
                sketch = MECHANISMS[name](Epsilon(epsilon), 1 << bits, SEED, **parameters)  # type: ignore[call-arg]
                break
            except InvalidSpec:
                continue
        assert isinstance(sketch, TeamSketch)
        lines = []
        for i in range(4):
            index = [0, (1 << bits) - 1][i] if i < 2 else _number(f"item {name} {bits} {i}", bits)
            words = [_number(f"word {name} {bits} {i} {w}", 64) for w in range(3)]
            lines.append(
                {
                    "index": hex(index),
                    "cells": [sketch.cell(index, team) for team in range(sketch.teams)],
                    "words": [hex(word) for word in words],
                    "report": sketch.randomize(index, words),
                }
            )
        out.append({"mechanism": name, "epsilon": epsilon, "bits": bits, "parameters": parameters, "items": lines})
    return out


def sketch_text() -> str:
    """Return the text of the file: one vector a line."""
    body = ",\n".join(json.dumps(v) for v in sketch_vectors())
    return f'{{"version": 1, "seed": "{SEED.hex()}", "vectors": [\n{body}\n]}}\n'


FILES = {
    "collections": collection_vectors,
    "items": item_vectors,
    "streams": stream_vectors,
    "hashes": hash_vectors,
    "permutations": permutation_vectors,
    "epsilons": epsilon_vectors,
    "responses": response_vectors,
    "reports": report_vectors,
    "payloads": payload_vectors,
    "refused_payloads": refused_payload_vectors,
    "refused_specs": malformed.vectors,
    "numbers": lambda: structured_vectors(structured_collections()),
    "subset_selection": lambda: structured_vectors(subset_collections()),
    "sets": lambda: structured_vectors(set_collections()),
    "fields": lambda: structured_vectors(field_collections()),
    "channels": lambda: structured_vectors(channel_collections()),
    "shifts": lambda: structured_vectors(shift_collections()),
    "records": lambda: structured_vectors(record_collections()),
    "protected": lambda: structured_vectors(protected_collections()),
    "grids": lambda: structured_vectors(grid_collections()),
    "averages": lambda: structured_vectors(averaged_collections()),
    "signed_lists": signed_list_vectors,
    "list_trees": list_tree_vectors,
    "refused_proofs": refused_proof_vectors,
    "relays": relay_vectors,
    "sealed_reports": sealed_vectors,
}


def render(name: str) -> str:
    """Return the text of one file: one vector a line."""
    lines = [json.dumps(vector, ensure_ascii=True) for vector in FILES[name]()]
    return f'{{"version": {VERSION}, "vectors": [\n' + ",\n".join(lines) + "\n]}\n"


def main() -> None:
    """Write every file."""
    FOLDER.mkdir(exist_ok=True)
    for name in FILES:
        (FOLDER / f"{name}.json").write_text(render(name), "ascii", newline="\n")
    SKETCHES_FILE.write_text(sketch_text())


if __name__ == "__main__":
    main()

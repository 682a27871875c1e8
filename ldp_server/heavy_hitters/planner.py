"""Chooses a sketch for a question, and says which items it will list.

For (users, domain, epsilon, beta, memory) `plans` returns every mechanism that fits, best first, each with its
parameters, the frequency from which all items are listed at once except with probability beta, the frequency from which
each is listed with probability 95%, the size of a report, and the memory and time of a decoding. If even an item that
all users hold would not be listed, the plan says how many users it takes. With a dictionary of equally weighted
candidates (dictionary.py) it also says from which frequency a candidate is listed. If a share of all reports are copies
of others, it plans with the factor by which the decoder would multiply variances (copies.py, `Copies.WEIGHED`).

The frequencies come from the formulas in promise.py. tests/server/heavy_hitters/test_planner.py compares it with
simulations.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.expander_sketch import ExpanderSketch
from ldp_client.mechanisms.linear_hash import MAX_CELLS
from ldp_client.mechanisms.prefix_tree import PrefixTree
from ldp_client.mechanisms.randomized_response import Response
from ldp_client.mechanisms.shared.team_sketch import TeamSketch
from ldp_client.mechanisms.tree_sketch import TreeSketch
from ldp_client.privacy.yardsticks import d_opt
from ldp_client.protocol.domain import Domain
from ldp_client.protocol.epsilon import Epsilon
from ldp_client.protocol.fields import is_field
from ldp_client.protocol.stream import SEED_BYTES
from ldp_client.protocol.tree_code import MAX_LEVELS
from ldp_server.heavy_hitters.dictionary import MOST_ITEMS, candidate_bars
from ldp_server.heavy_hitters.paper.expansion import best_attempt
from ldp_server.heavy_hitters.promise import (
    BETA,
    MARGINS,
    check_beta,
    false_items_of,
    least_users,
    promised,
    promised_candidate,
)
from ldp_server.heavy_hitters.recall import miss_law
from ldp_server.heavy_hitters.search.acceptance import LONG, Noise
from ldp_server.heavy_hitters.search.tails import normal_quantile
from ldp_server.heavy_hitters.search.tree import MOST_CELLS
from ldp_server.heavy_hitters.sketch_plan import BY_SCORES, SketchPlan, part_of, table
from ldp_server.oracles.independence.judge import expected_widening

__all__ = ["DEFAULT_MEMORY", "SketchPlan", "create", "plan", "plans", "table"]

DEFAULT_MEMORY = 3 << 29
_SEED = bytes(SEED_BYTES)  # a promise does not depend on the seed
_SHORT = 96  # bits: beyond, an expander's near-copies make false items (docs/heavy-hitters.md)
_TOLERANCE = 1.03
_PROFILES = tuple(itertools.product((4,), (7, 8), (2, 1)))
"""A tree's profiles: by how many bits the first payload is shorter than the cell, the bits of the other levels' hashes,
and the number of levels that only check. In simulations of the levels, first ones of 18 and 20 bits were alike, and 22
worse (docs/heavy-hitters.md)."""
_LONG_PROFILES = tuple(itertools.product((4, 2), (9,), (2, 1)))
"""Of long items. There the law would choose too few bits of hash: it leaves out that beams fill with near-copies of
other items, the more the longer items are. 9 bits measured best (docs/heavy-hitters.md)."""
_PROFILE_AT = 1.16  # x D_opt
_SORTED = 12
"""Bytes of a report among sorted ones, with those that are new and the sum of both."""
_BEST = 3 * 8 * MOST_CELLS
"""Bytes of a level's best cells: their numbers and scores, twice, and in the order of searches."""
_CANDIDATE_SECONDS = 1.5e-6
"""To find a candidate's cells, and to look at its score in every step."""
_MOST_COPIES = 0.5
_POINTERS = (4, 3)  # bits
_REDUNDANT = 2
_OVERLAP = 1.05
"""An expander's promised frequency is above the measured one by about this factor: the formula adds up the failures of
many near-copy tests, which overlap. Plans are compared without it."""


@dataclass(frozen=True)
class _Asked:
    """What every mechanism is planned for."""

    users: int
    beta: float
    dictionary: int
    copies: float

    def __post_init__(self) -> None:
        check_beta(self.beta)
        if self.users < 1:
            raise InvalidSpec("a plan needs at least one user")
        if not 0 <= self.copies < _MOST_COPIES:
            raise InvalidSpec(
                "copies is a share of all reports, from 0 to below 0.5, such as 0.05: where half of them are copies, "
                "nothing is estimated"
            )


def _field(epsilon: Epsilon, cells: int) -> tuple[int, int] | None:
    """The fewest q^t >= cells among the fields whose variance is within 3% of the best that fits."""
    options = []
    for q in range(2, min(512, max(8, int(3 * (math.exp(min(float(epsilon), 5.5)) + 1)))) + 1):
        if not is_field(q):
            continue
        t = 1
        while q**t < cells:
            t += 1
        if q**t <= MAX_CELLS:
            p, s = float(Response(epsilon, q).p), 1 / q
            options.append((s * (1 - s) / (p - s) ** 2, q**t, q, t))
    if not options:
        return None
    least = min(options)[0]
    _, q, t = min((size, q, t) for variance, size, q, t in options if variance <= _TOLERANCE * least)
    return q, t


def _data_chunks(bits: int, cell_bits: int, pointer: int) -> int:
    """How many chunks carry an item's bits in cells with two pointers."""
    return max(2, -(-bits // max(1, min(16, cell_bits - 2 * pointer))))


def _expander(epsilon: Epsilon, size: int, cell_bits: int, forced: bool) -> ExpanderSketch | None:
    """A cycle with two pointers, and two teams more than data chunks.

    With two redundant teams an item has a tenth of the nearly as strong relatives that one leaves. Pointers of 3 bits
    are taken where they spare a data chunk, otherwise 4 bits: fewer teams are searched better. A chunk is one bit
    longer than the item needs if the cell has room: each bit of padding halves the number of near-copies.
    """
    bits = (size - 1).bit_length()
    pointer = min(_POINTERS, key=lambda bits_: (_data_chunks(bits, cell_bits, bits_), -bits_))
    widest, data = min(16, cell_bits - 2 * pointer), _data_chunks(bits, cell_bits, pointer)
    chunk, teams = min(widest, -(-bits // data) + 1), data + _REDUNDANT
    if widest < 6 or teams > min(64, 1 << chunk) or (bits > _SHORT and not forced):
        return None
    field = _field(epsilon, 1 << chunk + 2 * pointer)
    if field is None:
        return None
    return ExpanderSketch(epsilon, size, _SEED, teams, chunk, pointer, 2, 0, *field, symbol_pointers=1)


def _tree(epsilon: Epsilon, size: int, cell_bits: int, forced: bool) -> TreeSketch | None:
    """The tree with the profile that loses the fewest items (`_profiled`), in the cheapest good field."""
    del forced
    bits = (size - 1).bit_length()
    field = _field(epsilon, 1 << cell_bits)
    if field is None or bits > MAX_LEVELS * cell_bits:
        return None
    return _profiled(epsilon, size, cell_bits, *field)


@lru_cache(maxsize=64)
def _profiled(epsilon: Epsilon, size: int, cell_bits: int, q: int, t: int) -> TreeSketch | None:
    """Return the tree whose law of missed items (recall.py) is the least, at a frequency of 1.16 x D_opt.

    Where hashes have few bits, levels carry many, so that there are fewer levels and each has more users. A short first
    level makes the early rivals fewer.
    """
    bits, false = (size - 1).bit_length(), false_items_of(BETA)
    noise = Noise(1 << 40, 1.0, 1.0, 0.5)
    bar = normal_quantile(math.log(false) - math.log(size)) + MARGINS["paths"]
    z = _PROFILE_AT * math.sqrt(2 * (math.log(size) + math.log(2 / BETA)))
    found: list[tuple[float, int, TreeSketch]] = []
    for first, hashed, checks in _PROFILES if bits <= LONG else _LONG_PROFILES:
        start, step = min(bits, max(1, cell_bits - first)), max(1, cell_bits - hashed)
        if -(-(bits - start) // step) + 1 + checks <= MAX_LEVELS:
            tree = TreeSketch(epsilon, size, _SEED, start, step, cell_bits, q, t, check_levels=checks)
            found.append((miss_law(tree, "paths", bar, noise).missed(z), len(found), tree))
    return min(found)[2] if found else None


def _prefix(epsilon: Epsilon, size: int, cell_bits: int, forced: bool) -> PrefixTree | None:
    """A first level of 16 bits, then 8 bits a level."""
    del forced
    bits = (size - 1).bit_length()
    field = _field(epsilon, 1 << cell_bits)
    if field is None or bits > 16 + 8 * 200:
        return None
    return PrefixTree(epsilon, size, _SEED, min(16, bits, cell_bits), 8, cell_bits, *field)


def _memory(sketch: TeamSketch, decoder: str, users: int, dictionary: int = 0) -> int:
    """Bytes for the counts and scores of every team, the arrays of one transform and the lists of the search.

    Counts are sorted reports while these take less (`Counts`). A tree's paths are made of each level's best cells, so
    no others are kept, but of the last payload's level and of those that check (scores.py). With a dictionary all are
    kept, and each candidate has a cell and a field of its message in every team.
    """
    cells, teams = sketch.inner.size, sketch.teams
    counts = min(4 * teams * sketch.inner.bound, _SORTED * users)
    whole, best, words = teams, 0, 0
    if part_of(decoder, dictionary) < 1:
        words = dictionary * (12 * teams + 24 * -(-sketch.size.bit_length() // 64) + 32)
    elif decoder == "paths" and isinstance(sketch, TreeSketch):
        whole = sketch.check_levels + 1
        best = teams - whole
    return counts + 4 * cells * whole + _BEST * best + 48 * cells + words + (64 << 20)


def _seconds(sketch: TeamSketch, decoder: str, dictionary: int) -> float:
    """CPU seconds of transforms and search, from counted operations."""
    cells, teams = sketch.inner.size, sketch.teams
    transform = 2.5e-8 * cells * teams
    search = {"soft": 0.012 * teams * teams, "paths": 0.06 * teams, "levels": 0.01 * teams}[decoder]
    words = _CANDIDATE_SECONDS * dictionary if decoder in BY_SCORES else 0.0
    return transform + 2e-8 * cells * teams + 3 * search + words


_SHAPES = {"expander-sketch": (_expander, "soft"), "tree-sketch": (_tree, "paths"), "prefix-tree": (_prefix, "levels")}


def plans(
    users: int,
    domain: Domain,
    epsilon: Epsilon | str,
    *,
    beta: float = BETA,
    memory: int = DEFAULT_MEMORY,
    mechanism: str = "auto",
    dictionary: int = 0,
    copies: float = 0.0,
) -> list[SketchPlan]:
    """Return every mechanism that fits into the memory; the one that finds the rarest items comes first.

    `dictionary` is the number of its candidates, of equal weight. `copies` is the share of all reports that are copies
    of others, each of a different one.
    """
    epsilon = epsilon if isinstance(epsilon, Epsilon) else Epsilon.parse(epsilon)
    asked = _Asked(users, beta, dictionary, copies)
    if mechanism != "auto" and mechanism not in _SHAPES:
        raise InvalidSpec(f"mechanisms that find heavy hitters: {', '.join(_SHAPES)}")
    if domain.bits < 8:
        raise InvalidSpec(
            "sketches are for domains of 2^8 elements or more: for a smaller one, choose a frequency oracle"
        )
    _check_dictionary(dictionary, domain)
    found = []
    for name, (shape, decoder) in _SHAPES.items():
        if mechanism in ("auto", name):
            for cell_bits in range(22, 11, -1):
                sketch = shape(epsilon, domain.size, cell_bits, mechanism == name)
                if sketch is not None and _memory(sketch, decoder, users, dictionary) <= memory:
                    found.append(_plan(sketch, decoder, asked))
                    break
    if not found:
        smaller = ", or a smaller dictionary" if dictionary else ""
        raise InvalidSpec(
            f"no sketch for this domain fits into that memory: allow more, or ask for shorter items{smaller}"
        )
    return sorted(found, key=lambda p: p.reliable / (_OVERLAP if p.mechanism == "expander-sketch" else 1.0))


def _check_dictionary(items: int, domain: Domain) -> None:
    most = min(MOST_ITEMS, domain.size - 1)
    if not 0 <= items <= most:
        raise InvalidSpec(f"dictionary is the number of its candidates: from 1 to {most:,} here, or 0 for none")


def _plan(sketch: TeamSketch, decoder: str, asked: _Asked) -> SketchPlan:
    log_items, part = math.log(sketch.size), part_of(decoder, asked.dictionary)
    factor = _factor(sketch, asked)
    worth = int(asked.users / factor)
    found = promised(sketch, decoder, log_items, asked.beta, worth, part)
    return SketchPlan(
        mechanism=sketch.name,
        decoder=decoder,
        parameters=dict(sketch.parameters()),
        users=asked.users,
        reliable=factor * found.each,
        all_at_once=factor * found.all_at_once,
        beta=asked.beta,
        multiple=factor * found.each / d_opt(asked.users, float(sketch.epsilon), sketch.size),
        users_needed=math.ceil(factor * least_users(sketch, decoder, log_items, asked.beta, part=part)),
        report_bits=sketch.report_bits,
        report_bytes=sketch.report_bytes,
        memory_bytes=_memory(sketch, decoder, asked.users, asked.dictionary),
        seconds=_seconds(sketch, decoder, asked.dictionary),
        dictionary=asked.dictionary,
        candidate=factor * _candidate(sketch, decoder, asked, worth) if part < 1 else None,
        copies=asked.copies,
        factor=factor,
    )


def _factor(sketch: TeamSketch, asked: _Asked) -> float:
    """The factor by which the decoder is expected to multiply variances: team and point of a report are one draw."""
    if not asked.copies:
        return 1.0
    return expected_widening([(asked.users, sketch.teams * sketch.inner.points)], asked.copies)


def _candidate(sketch: TeamSketch, decoder: str, asked: _Asked, worth: int) -> float:
    """The frequency among `worth` independent reports from which a candidate is listed with probability 95%."""
    if not worth:
        return math.inf
    _, s = (float(x) for x in sketch.inner.support)
    shares = np.array([-math.log(asked.dictionary)])
    bar = float(candidate_bars(worth, s, shares, false_items_of(asked.beta))[0])
    return promised_candidate(sketch, decoder, bar, worth)


def plan(
    users: int,
    domain: Domain,
    epsilon: Epsilon | str,
    *,
    beta: float = BETA,
    memory: int = DEFAULT_MEMORY,
    mechanism: str = "auto",
    dictionary: int = 0,
    copies: float = 0.0,
) -> SketchPlan:
    """Return the best plan, which is the first of `plans`."""
    return plans(
        users,
        domain,
        epsilon,
        beta=beta,
        memory=memory,
        mechanism=mechanism,
        dictionary=dictionary,
        copies=copies,
    )[0]


def create(
    question: str,
    domain: Domain,
    epsilon: Epsilon | str,
    chosen: SketchPlan,
    *,
    opens: int,
    closes: int,
    nonce: int = 0,
) -> Collection:
    """Return the collection that a plan describes."""

    def attempt(number: int) -> Collection:
        parameters = chosen.parameters | ({"attempt": number} if "attempt" in chosen.parameters else {})
        return Collection.create(
            question,
            domain,
            chosen.mechanism,
            epsilon,
            opens=opens,
            closes=closes,
            parameters=parameters,
            nonce=nonce,
        )

    return best_attempt(attempt)

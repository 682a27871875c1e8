"""What a relay is worth: the privacy blanket beside the clones' bound, and beside brute force for small batches."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.anonymity.multisets import law_table, worst_delta
from benchmarks.row import Options, Row, cpu_seconds, row
from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.bounded_number import BoundedNumber
from ldp_client.mechanisms.bounded_number import design as number_design
from ldp_client.mechanisms.composed_response import ComposedResponse
from ldp_client.mechanisms.composed_response import design as attributes_design
from ldp_client.mechanisms.hierarchy import Hierarchy
from ldp_client.mechanisms.hierarchy import design as tree_design
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.records.sampled_attribute import SampledAttribute
from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_client.mechanisms.subset_selection import design as subset_design
from ldp_client.privacy.blanket import Blanket
from ldp_client.privacy.shuffle import batches, grouped, shuffled
from ldp_client.protocol.epsilon import Epsilon

__all__ = ["run"]

DELTA = 1e-6
USERS = (10**4, 10**5, 10**6)
HASHES = {"1": (3, 11), "2": (7, 6), "4": (53, 3)}
"""q and t of a linear hash for 65,536 categories, q next to e^eps + 1."""
EXPECTED = {"1": (0.0305, 0.0087, 0.0025), "2": (0.082, 0.024, 0.0068), "4": (0.28, 0.082, 0.0239)}
"""The same from a convolution on a grid of a hundredth of the largest value."""


def _hash(text: str) -> LinearHash:
    q, t = HASHES[text]
    return LinearHash(Epsilon(text), q**t, q, t)


def _others(text: str) -> list[tuple[str, Randomizer]]:
    epsilon = Epsilon(text)
    return [
        ("randomized-response, 2 answers", RandomizedResponse(epsilon, 2)),
        ("randomized-response, 8 answers", RandomizedResponse(epsilon, 8)),
        ("subset-selection, 64 categories", SubsetSelection(epsilon, 64, **subset_design(epsilon, 64))),
        ("composed-response, 10 attributes", ComposedResponse(epsilon, 1 << 10, **attributes_design(epsilon, 10))),
        ("sampled-attribute", SampledAttribute(epsilon, 1 << 10)),
        ("bounded-number", BoundedNumber(epsilon, 1001, **number_design(epsilon))),
        ("hierarchy, 1,000 integers", Hierarchy(epsilon, 1001, **tree_design(epsilon, 1000))),
    ]


def _table() -> Iterator[Row]:
    for text, expected in EXPECTED.items():
        for users, value in zip(USERS, expected, strict=True):
            name = f"eps0={text} n={users} delta=1e-6"
            blanket, clones = shuffled(_hash(text), users, DELTA), shuffled(text, users, DELTA)
            yield row(f"linear-hash {name}: {blanket.rule}", blanket.epsilon, "nats", f"<= {1.02 * value:.4g}")
            yield row(f"any mechanism {name}: {clones.rule}", clones.epsilon, "nats")
    for text in HASHES:
        for label, mechanism in _others(text):
            found = shuffled(mechanism, 10**5, DELTA)
            yield row(f"{label} eps0={text} n=100000 delta=1e-6: {found.rule}", found.epsilon, "nats")


def _schedule() -> Iterator[Row]:
    for count in (12, 52, 365):
        found = batches(_hash("1"), 10**5, count, DELTA)
        yield row(f"linear-hash eps0=1 n=100000, {count} batches: {found.rule}", found.epsilon, "nats")
        found = grouped(_hash("1"), 10**5, count, DELTA)
        yield row(f"linear-hash eps0=1 n=100000, {count} reports, anyhow: {found.rule}", found.epsilon, "nats")


def _brute_force(full: bool) -> Iterator[Row]:
    """The worst delta over all datasets of the others, from every multiset of reports."""
    for text, categories in (("1", 3), ("3", 5)):
        mechanism = RandomizedResponse(Epsilon(text), categories)
        for users in (2, 4, 6 if full or categories == 3 else 5):
            epsilons = [share * float(text) for share in (0.0, 0.1, 0.3)]
            bound = Blanket(mechanism.pair_laws, users)
            exact = worst_delta(law_table(mechanism), users, epsilons)
            worst = max(bound.delta(epsilon) / delta for epsilon, delta in zip(epsilons, exact, strict=True))
            name = f"{categories}-ary response eps0={text} n={users}"
            yield row(f"{name}: bound / brute force, eps up to 0.3 eps0", worst, "ratio", "<= 1.03")
    (delta,) = worst_delta(law_table(RandomizedResponse(Epsilon("1"), 3)), 2, [0.8])
    found = Blanket(RandomizedResponse(Epsilon("1"), 3).pair_laws, 2).delta(0.8)
    yield row("3-ary response eps0=1 n=2: delta(0.8) by brute force", delta, "1")
    yield row("3-ary response eps0=1 n=2: delta(0.8), bound / brute force", found / delta, "ratio", "<= 1.03")


def _speed() -> Iterator[Row]:
    wide = ComposedResponse(Epsilon("1"), 1 << 20, **attributes_design("1", 20))
    for label, mechanism in (("linear-hash", _hash("1")), ("composed-response, 20 attributes", wide)):
        for users in (10**4, 10**9):
            taken = cpu_seconds(partial(shuffled, mechanism, users, DELTA), 3)
            yield row(f"{label} n={users}: one bound in pure Python", 1000 * taken, "ms", "<= 1000")


def run(options: Options) -> Iterator[Row]:
    """Give all rows."""
    yield from _table()
    yield from _schedule()
    yield from _brute_force(options.full)
    yield from _speed()

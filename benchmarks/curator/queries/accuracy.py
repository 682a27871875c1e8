"""Errors of queries of one's own beside the classical baselines. They are known before any record is read.

An error is the standard error of a count, in people, as the root of the mean over all queries. `epsilon 1` is Laplace
noise, `rho 0.5` Gaussian noise: a pure epsilon of 1 is at most that rho.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

from benchmarks.curator.workloads import binary
from benchmarks.row import Row, row
from ldp_client.protocol.domain import Categories, Field, Integers, YesNo
from ldp_client.protocol.domain import Record as Fields
from ldp_server.curator.laws import laplace_variance
from ldp_server.curator.workloads.knorm.counts import group_noises
from ldp_server.curator.workloads.matrix.plans import Price, gaussian_bound, plans
from ldp_server.curator.workloads.matrix.queries import LinearQueries, condition, ranges_of, table_queries
from ldp_server.curator.workloads.universe import pairs

__all__ = ["rows"]

_PRICES = ((Price(epsilon=Fraction(1)), "epsilon 1"), (Price(rho=Fraction(1, 2)), "rho 0.5"))


def _asked() -> dict[str, LinearQueries]:
    ages, bits = Fields((Field("age", Integers(0, 63)),)), binary(6)
    some = Fields(
        (Field("plan", Categories(("free", "paid"))), Field("dark", YesNo(True)), Field("age", Integers(0, 7)))
    )
    texts = ("plan: paid; age: 2..4", "dark: yes; plan: none, free")
    return {
        "all ranges of 63 values": LinearQueries(ages, tuple(ranges_of(ages, "age"))),
        "all pairs of 6 yes/no fields": LinearQueries(bits, tuple(table_queries(bits, pairs(bits)))),
        "ranges of 7 values and 2 conditions": LinearQueries(
            some, (*ranges_of(some, "age"), *(condition(some, text) for text in texts))
        ),
    }


def rows() -> Iterator[Row]:
    """Yield the errors."""
    for name, asked in _asked().items():
        for price, paid in _PRICES:
            found = plans(asked, price)
            told = {plan.name: plan.error for plan in found}
            label = f"linear, {name}, {paid}"
            yield row(f"{label}: error with {found[0].name}", found[0].error, "people")
            for plain in ("identity", "workload", "hierarchy", "wavelet"):
                yield row(f"{label}: best over {plain}", found[0].error / told[plain], "", "<= 1.001")
            if price.rho is not None:
                bound = gaussian_bound(asked, price.rho) or 0.0
                yield row(f"{label}: best over the bound of all strategies", found[0].error / bound, "", "<= 1.01")
    yield from _overlapping()


def _overlapping() -> Iterator[Row]:
    for name, answers, target in (
        ("4 groups, each item in 1", [(0,) * 4, *(tuple(int(i == j) for i in range(4)) for j in range(4))], "<= 0.8"),
        ("4 nested groups", [tuple(int(k >= j) for k in range(4)) for j in range(5)], "<= 0.8"),
        ("4 groups in a ring, each item in 2", [(0,) * 4, *_ring()], "<= 0.8"),
        ("4 groups in any combination", [*itertools.product((0, 1), repeat=4)], "<= 1.001"),
    ):
        told = {noise.name: noise.error for noise in group_noises(answers, Fraction(1))}
        yield row(f"overlapping, {name}, epsilon 1: error of the hull", told["hull"], "people")
        classical = min(told["cube"], told["laplace"])
        yield row(
            f"overlapping, {name}: hull over the better of cube and Laplace", told["hull"] / classical, "", target
        )
    yield from _many_dimensions()
    many = [(0,) * 64, *(tuple(int(i == j) for i in range(64)) for j in range(64))]
    best = group_noises(many, Fraction(1))[0]
    noise = laplace_variance(2.0) ** 0.5
    yield row(
        "overlapping, 64 groups, each item in 1: error over Laplace's of a histogram",
        best.error / noise,
        "",
        "<= 1.001",
    )


def _many_dimensions() -> Iterator[Row]:
    """Beyond four independent counts, beside the others and `linear`: its strategy knows the number of people, too."""
    for count in (5, 8, 16):
        answers = [tuple(int(k >= j) for k in range(count)) for j in range(count + 1)]
        told = {noise.name: noise.error for noise in group_noises(answers, Fraction(1))}
        ages = Fields((Field("age", Integers(1, count)),))
        asked = LinearQueries(ages, tuple(condition(ages, f"age: {1}..{end}") for end in range(1, count + 1)))
        label = f"overlapping, {count} nested groups, epsilon 1"
        yield row(f"{label}: error of noise on the patterns", told["exclusive"], "people")
        classical = min(told["cube"], told["laplace"])
        yield row(f"{label}: over the better of cube and Laplace", told["exclusive"] / classical, "", "<= 0.8")
        matrix = plans(asked, Price(epsilon=Fraction(1)))[0]
        yield row(f"{label}: over linear with {matrix.name}", told["exclusive"] / matrix.error, "", "<= 1")


def _ring() -> list[tuple[int, ...]]:
    return [tuple(int(k in {j, (j + 1) % 4}) for k in range(4)) for j in range(4)]

"""The chooser's figures, held against simulation and against the formulas' own limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.privacy.yardsticks import v_opt
from ldp_client.protocol.domain import Integers, Strings
from ldp_server.answers.choose import alternatives, choose, table
from tests.server.oracles.cases import filled, population


def collection_of(alternative, domain, epsilon, nonce=0):
    return Collection.create(
        "?", domain, alternative.mechanism, epsilon, parameters=alternative.parameters, opens=1, closes=2, nonce=nonce
    )


@pytest.mark.parametrize("size", [2, 3, 17, 300, 2000, 50_000])
@pytest.mark.parametrize("epsilon", ["0.5", "1", "3", "6"])
@pytest.mark.thinned(2)
def test_every_alternative_keeps_its_promise(request, size, epsilon):
    """Mean square errors over a whole domain, of every alternative, against the promised ones."""
    users, estimates = 20_000, 4000 if request.config.getoption("--slow") else 600
    held = population(size, users, 5, distinct=size)
    truth = np.bincount(held.astype(np.intp), minlength=size)
    skew = float(((truth / users) ** 2).sum())
    for option in alternatives(users, size, epsilon, skew=skew):
        collection = collection_of(option, Integers(0, size - 1), epsilon)
        assert collection.domain.size == size
        assert collection.randomizer.report_bits == option.report_bits
        squares = []
        # Items that differ in one digit alone share the errors of the points that have a 0 there: they count as few.
        alike = 72 if size / 2 < option.parameters.get("q", 0) < size else 0
        for run in range(2 if size > 1000 else max(alike, estimates // size)):
            randomizer = collection_of(option, Integers(0, size - 1), epsilon, nonce=run).randomizer
            squares.append(((filled(randomizer, held, run).estimate_all() - truth) ** 2).mean())
        # The formula spreads the users evenly over the domain; popular items make it up to a little more or less.
        ratio = math.sqrt(np.mean(squares)) / option.standard_error
        least = 0.3 if option.mechanism == "hashtogram" else 0.85  # it leaves out the cells of popular items
        assert least < ratio < 1.15, option


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "4"])
@pytest.mark.parametrize("size", [1024, 65_536])
def test_the_pick_is_near_the_optimum(size, epsilon):
    pick = choose(10**6, size, epsilon)
    assert pick.variance_over_optimum < (1.045 if epsilon == "1" else 1.05)
    assert pick.report_bytes <= 3


@pytest.mark.parametrize(
    ("size", "epsilon", "mechanism", "d"),
    [
        (8, "0.5", "subset-selection", 3),
        (12, "1", "subset-selection", 3),
        (16, "1", "linear-hash", None),  # 4^2 elements: the same variance, and a shorter report
        (20, "1", "subset-selection", 5),
        (32, "2", "subset-selection", 4),
        (64, "3", "subset-selection", 3),
        (8, "3", "randomized-response", None),  # a subset of one is randomized response
        (64, "0.5", "linear-hash", None),  # within 2%, and a shorter report
        (300, "1", "linear-hash", None),
    ],
)
def test_subset_selection_is_picked_where_it_wins(size, epsilon, mechanism, d):
    """Above 2% less variance than the others: small domains at middle epsilons."""
    pick = choose(100_000, size, epsilon)
    assert (pick.mechanism, pick.parameters.get("d")) == (mechanism, d)
    others = [one for one in alternatives(100_000, size, epsilon) if one.mechanism != "subset-selection"]
    if mechanism == "subset-selection":
        assert pick.standard_error**2 * 1.02 < min(one.standard_error**2 for one in others)
        assert pick.memory_bytes < 10 << 20  # k sums, not a count for each of the sets


@pytest.mark.parametrize(
    ("epsilon", "q", "most"),
    [("0.5", 3, 1.01), ("1", 4, 1.003), ("2", 8, 1.001), ("2.25", 11, 1.001), ("4", 53, 1.003)],
)
@pytest.mark.parametrize("size", [1024, 65_536])
def test_the_field_with_the_least_variance_is_picked_where_memory_is_little(size, epsilon, q, most):
    pick = choose(10**6, size, epsilon)
    assert pick.parameters["q"] == q
    assert pick.variance_over_optimum < most


def test_less_memory_decides_between_fields_where_it_is_much():
    wide = 1_500_000
    pick = choose(10**6, wide, "2", memory=1 << 28)
    least = min(one.standard_error for one in alternatives(10**6, wide, "2", memory=1 << 28))
    assert pick.parameters == {"q": 8, "t": 7}  # 2^21 cells; 7^8 would be 5.8 million
    few = choose(10**6, 4_000_000, "2", memory=1 << 29)
    assert few.parameters == {"q": 7, "t": 8}  # 8^8 cells are 16.8 million
    assert few.standard_error < 1.01 * least
    small = choose(10**6, 65_536, "2", memory=6 << 20)  # 8^6 cells do not fit
    assert small.parameters == {"q": 7, "t": 6}


@given(st.integers(1, 10**9), st.integers(2, 1 << 130), st.sampled_from(["0.01", "0.1", "1", "3.7", "9", "20"]))
@settings(max_examples=60, deadline=None)
@pytest.mark.long
def test_a_pick_fits_its_memory_and_can_be_built(users, size, epsilon):
    memory = 64 << 20
    try:
        pick = choose(users, size, epsilon, memory=memory)
    except InvalidSpec as error:
        assert "memory" in str(error)
        return
    assert pick.memory_bytes <= memory
    domain = Integers(0, size - 1) if size <= 1 << 64 else Strings(min(1024, size.bit_length() // 8 + 1))
    collection_of(pick, domain, epsilon)


def test_what_was_given_up_is_said():
    options = alternatives(10**6, 65_536, "1")
    assert [o.mechanism for o in options][-1] == "randomized-response"
    assert not options[0].remark and "more variance than q = 4" in options[1].remark
    poor = choose(10**7, 1 << 64, "4", memory=2 << 20)
    assert "more memory" in poor.remark


def test_bad_wishes():
    for wish in ({"users": 0}, {"size": 1}, {"memory": 5}, {"skew": 2.0}, {"epsilon": "21"}, {"epsilon": "x"}):
        with pytest.raises(InvalidSpec):
            alternatives(**{"users": 100, "size": 100, "epsilon": "1", **wish})


def test_the_yardstick():
    assert v_opt(1.0) == pytest.approx(4 * math.e / (math.e - 1) ** 2)


def test_the_table_says_what_the_data_say():
    options = alternatives(10**6, 65_536, "1")
    head, *lines = table(options).splitlines()
    assert head.split()[:2] == ["mechanism", "parameters"]
    assert len(lines) == len(options)
    assert lines[0].split()[:3] == ["linear-hash", "q=4", "t=8"]
    assert "1,921 users" in lines[0] and "1.002" in lines[0] and "more variance than q = 4" in lines[1]
    assert len({line.index(" MB") for line in (head, *lines) if " MB" in line}) == 1

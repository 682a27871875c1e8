"""The planner's arithmetic, and its promise against simulation with real reports."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.expander_sketch import ExpanderSketch
from ldp_client.protocol import tags
from ldp_client.protocol.domain import Categories, Integers, Strings
from ldp_client.protocol.expander import Expander
from ldp_client.protocol.stream import SEED_BYTES
from ldp_server.arrays.items import from_ints
from ldp_server.arrays.packing import pack
from ldp_server.heavy_hitters import begins_with_items, decode
from ldp_server.heavy_hitters.dictionary import MOST_ITEMS, Dictionary
from ldp_server.heavy_hitters.paper.expansion import best_attempt, expands, second_eigenvalue
from ldp_server.heavy_hitters.planner import create, plan, plans, table
from ldp_server.oracles import oracle_for
from ldp_server.oracles.independence.judge import pairs_of
from ldp_server.oracles.independence.result import NotIndependent
from simulator import crowd
from tests.server.heavy_hitters.cases import EXPANDER, collection, users

WIDE = Integers(0, (1 << 64) - 1)


@pytest.mark.parametrize(
    ("domain", "epsilon"),
    [(WIDE, "1"), (WIDE, "4"), (Strings(16), "1"), (Strings(32), "2"), (Integers(0, 1 << 20), "1")],
)
@pytest.mark.parametrize("memory", [1 << 30, 300 << 20])
@pytest.mark.thinned(5)
def test_plans_are_collections_that_fit(domain, epsilon, memory):
    for found in plans(10**6, domain, epsilon, memory=memory):
        assert found.memory_bytes <= memory
        spec = create("q", domain, epsilon, found, opens=0, closes=1)
        assert spec.randomizer.name == found.mechanism
        assert spec.randomizer.report_bits == found.report_bits
        assert found.enough
        assert 1.0 < found.multiple < 3
        assert f"{math.ceil(found.reliable):,}" in found.promise
    first = plans(10**6, domain, epsilon)[0].mechanism
    assert first == ("expander-sketch" if domain.size <= 1 << 65 else "tree-sketch")


@pytest.mark.parametrize(
    ("domain", "shape"),
    [
        (WIDE, (6, 16, 3)),  # 64 bits: pointers of 3 bits spare a data chunk
        (Strings(8), (7, 14, 4)),  # 65 bits: they do not
        (Integers(0, (1 << 40) - 2), (5, 14, 4)),
        (Integers(0, (1 << 16) - 2), (4, 9, 4)),
        (Strings(11), (8, 16, 3)),
    ],
)
def test_an_expander_has_two_redundant_teams_and_as_few_chunks_as_fit(domain, shape):
    found = plan(10**6, domain, "1", mechanism="expander-sketch").parameters
    assert (found["teams"], found["chunk_bits"], found["hash_bits"]) == shape


SEED = bytes(range(SEED_BYTES))


@pytest.mark.long
def test_more_users_find_rarer_items_and_longer_items_cost():
    shares = [plan(n, WIDE, "1").reliable / n for n in (10**5, 10**6, 10**7)]
    assert shares == sorted(shares, reverse=True)
    lengths = [plan(10**6, Strings(n), "1").reliable for n in (8, 16, 32)]
    assert lengths == sorted(lengths)


def test_too_much_is_answered_with_the_number_of_users():
    found = plan(3000, Strings(32), "0.5")
    assert not found.enough
    assert 3000 < found.users_needed < 30_000
    assert f"{found.users_needed:,}" in found.promise
    assert plan(2 * found.users_needed, Strings(32), "0.5").enough
    assert "not enough" in table([found])


def test_what_cannot_be_planned_is_refused():
    with pytest.raises(InvalidSpec, match="choose a frequency oracle"):
        plan(1000, Categories(("a", "b")), "1")
    with pytest.raises(InvalidSpec, match="fits into that memory"):
        plan(1000, WIDE, "1", memory=1 << 20)
    with pytest.raises(InvalidSpec, match="or a smaller dictionary"):
        plan(1000, WIDE, "1", memory=200 << 20, mechanism="tree-sketch", dictionary=MOST_ITEMS)
    with pytest.raises(InvalidSpec, match="mechanisms that find"):
        plan(1000, WIDE, "1", mechanism="linear-hash")
    with pytest.raises(InvalidSpec, match="at least one user"):
        plan(0, WIDE, "1")


@pytest.mark.long
def test_a_graph_is_searched_for():
    wanted = EXPANDER | {"teams": 12, "chunk_bits": 4, "degree": 4, "hash_bits": 2, "q": 7, "t": 5}
    spec = best_attempt(lambda number: collection("expander-sketch", wanted | {"attempt": number}))
    assert isinstance(spec.randomizer, ExpanderSketch)
    assert expands(spec.randomizer.code.expander)
    assert second_eigenvalue(spec.randomizer.code.expander) < 3.6
    again = best_attempt(lambda number: collection("expander-sketch", wanted | {"attempt": number}))
    assert again == spec


def test_a_graph_that_does_not_expand_is_refused():
    """On four teams, degree 3 is the complete graph; a cycle's eigenvalue is near its degree; six teams can be K33."""
    assert expands(Expander(SEED, tags.EXPANDER_GRAPH, 4, 3, 2))
    assert not expands(Expander(SEED, tags.EXPANDER_GRAPH, 12, 2, 0))
    values = [second_eigenvalue(graph(6, 3, start)) for start in range(0, 400, 40)]
    assert {round(value, 2) for value in values} == {2.0, 3.0}  # the prism and K33
    wanted = EXPANDER | {"teams": 6, "chunk_bits": 8, "degree": 3, "hash_bits": 1, "q": 7, "t": 5}
    bipartite = next(a for a in range(4000) if _bipartite(wanted | {"attempt": a}))
    with pytest.raises(InvalidSpec, match="take another nonce"):
        best_attempt(lambda number: collection("expander-sketch", wanted | {"attempt": bipartite}))


def graph(teams, degree, attempt):
    """The first graph from this attempt on."""
    while True:
        try:
            return Expander(SEED, tags.EXPANDER_GRAPH, teams, degree, attempt)
        except InvalidSpec:
            attempt += 1


def _bipartite(parameters):
    try:
        return second_eigenvalue(collection("expander-sketch", parameters).randomizer.code.expander) > 2.9
    except InvalidSpec:
        return False


def hits(domain, users, epsilon, mechanism, multiples, each, seeds, memory=80 << 20):
    """How often items at multiples of the promised frequency are listed, and how many false ones are."""
    found = plan(users, domain, epsilon, mechanism=mechanism, memory=memory)
    listed, false = {m: [] for m in multiples}, 0
    for seed in seeds:
        spec = create(f"promise {seed}", domain, epsilon, found, opens=0, closes=1)
        rng = np.random.default_rng(seed)
        counts = [round(m * found.reliable) for m in multiples for _ in range(each)]
        held = len(counts) + users - sum(counts)
        items = [int(place) for place in rng.integers(1, min(domain.size, 1 << 63), held)]
        numbers = [item for item, count in zip(items, counts, strict=False) for _ in range(count)] + items[
            len(counts) :
        ]
        oracle = oracle_for(spec)
        for reports in crowd.simulate(spec.randomizer, from_ints(numbers, domain.bits), seed):
            oracle.accumulate(pack(reports, spec.randomizer.report_bytes))
        answer = {domain.index(h.item) for h in decode(spec, oracle).items}
        planted = [m for m in multiples for _ in range(each)]
        for multiple, item in zip(planted, items, strict=False):
            listed[multiple].append(item in answer)
        false += len(answer - set(items[: len(counts)]))
    return listed, false


SMALL = [
    (Integers(0, (1 << 40) - 1), 50_000, "3", "expander-sketch"),
    (Integers(0, (1 << 30) - 1), 100_000, "1", "expander-sketch"),
    (Strings(8), 50_000, "4", "tree-sketch"),
    (Integers(0, (1 << 40) - 1), 100_000, "3", "prefix-tree"),
]


@pytest.mark.parametrize(("domain", "users", "epsilon", "mechanism"), SMALL)
@pytest.mark.thinned(2)
def test_the_promise_is_kept(request, domain, users, epsilon, mechanism):
    """At the promised frequency 95% are listed: of 12 items no fewer than 9 (0.2% by chance); far below, few are."""
    runs = 6 if request.config.getoption("--slow") else 3
    memory = {"prefix-tree": 400, "tree-sketch": 200}.get(mechanism, 80) << 20
    listed, false = hits(domain, users, epsilon, mechanism, (1.0, 0.5), 4, range(runs), memory)
    assert sum(listed[1.0]) >= (19 if runs == 6 else 9)
    assert sum(listed[0.5]) <= 2 * runs
    assert false <= 1


LARGE = [
    (WIDE, 10**6, "1", "expander-sketch"),
    (WIDE, 10**5, "4", "expander-sketch"),
    (Strings(8), 10**6, "1", "expander-sketch"),
    (Strings(16), 10**6, "1", "tree-sketch"),
    (Strings(32), 10**6, "2", "tree-sketch"),
    (WIDE, 10**6, "1", "prefix-tree"),
]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("domain", "users", "epsilon", "mechanism"), LARGE)
def test_the_promise_is_kept_at_full_size(domain, users, epsilon, mechanism):
    listed, false = hits(domain, users, epsilon, mechanism, (1.0,), 5, range(8), memory=1 << 30)
    assert sum(listed[1.0]) >= 34  # of 40, at 95%: fewer has 1% probability
    assert false <= 2


FORTY = Integers(0, (1 << 40) - 1)
COUNT, CANDIDATES = 30_000, 1000
PLANNED = [("expander-sketch", 80 << 20), ("tree-sketch", 120 << 20)]
"""Mechanisms that take a dictionary, with memories that make them quick."""


def planned(mechanism, memory, **more):
    return plan(COUNT, FORTY, "3", mechanism=mechanism, memory=memory, **more)


def candidates(seed, size=CANDIDATES):
    return np.random.default_rng([seed, 1]).integers(1, 1 << 40, size).tolist()


def counted(found, popular, seed):
    """Reports of a plan's users, the planned part of them copies of others."""
    spec = create(f"counted {seed}", FORTY, "3", found, opens=0, closes=1)
    made = np.concatenate(list(crowd.simulate(spec.randomizer, users(FORTY, popular, COUNT, seed), seed)))
    made = np.random.default_rng(seed).permutation(made)
    again = round(found.copies * COUNT)
    oracle = oracle_for(spec)
    oracle.accumulate(pack(np.concatenate([made[: COUNT - again], made[:again]]), spec.randomizer.report_bytes))
    return spec, oracle


def answered(found, seed):
    """The answer to reports of users none of whom share an item."""
    spec, oracle = counted(found, {}, seed)
    words = Dictionary.of(FORTY, candidates(seed, found.dictionary)) if found.dictionary else None
    return decode(spec, oracle, dictionary=words)


@pytest.mark.parametrize("size", [0, 1, CANDIDATES])
@pytest.mark.parametrize(("mechanism", "memory"), PLANNED)
@pytest.mark.thinned(3)
def test_planned_bars_are_the_decoders(mechanism, memory, size):
    found = planned(mechanism, memory, dictionary=size)
    answer = answered(found, 1)
    assert answer.threshold == pytest.approx(found.reliable, rel=0.002)
    assert answer.threshold_all == pytest.approx(found.all_at_once, rel=0.002)
    assert (answer.dictionary is None) == (found.candidate is None) == (size == 0)
    if size:
        assert answer.dictionary.each == pytest.approx(found.candidate, rel=1e-6)


@pytest.mark.parametrize("copies", [0.05, 0.1, 0.3])
@pytest.mark.parametrize(("mechanism", "memory"), PLANNED)
@pytest.mark.thinned(3)
def test_with_copies_a_plan_promises_what_the_list_does(mechanism, memory, copies):
    """The mean of four lists is not above the plan, but for a step of a bar, 0.5%, nor more than 3% below."""
    found = planned(mechanism, memory, dictionary=CANDIDATES, copies=copies)
    answers = [answered(found, seed) for seed in range(4)]
    assert all(answer.independence.widened > 1 for answer in answers)
    each = np.mean([answer.threshold for answer in answers]) / found.reliable
    candidate = np.mean([answer.dictionary.each for answer in answers]) / found.candidate
    assert 0.97 < each < 1.005
    assert 0.97 < candidate < 1.005
    honest = planned(mechanism, memory, dictionary=CANDIDATES)
    assert found.candidate > 1.01 * honest.candidate
    assert found.users_needed > 1.02 * honest.users_needed


@pytest.mark.parametrize(("mechanism", "memory"), [*PLANNED, ("prefix-tree", 300 << 20)])
@pytest.mark.thinned(1)
def test_the_planned_draws_are_those_of_the_reports(mechanism, memory):
    """Team and point of a report: the counts of all of them, without a report, have their number."""
    found = planned(mechanism, memory)
    spec = create("draws", FORTY, "3", found, opens=0, closes=1)
    (draw,) = pairs_of(oracle_for(spec))
    assert draw.values == spec.randomizer.teams * spec.randomizer.inner.points


def test_copies_that_are_too_few_to_be_noticed_change_nothing():
    mechanism, memory = PLANNED[0]
    honest, few, some = (planned(mechanism, memory, copies=part) for part in (0.0, 0.002, 0.05))
    assert (few.factor, few.reliable, few.users_needed) == (1.0, honest.reliable, honest.users_needed)
    assert some.factor > 1.1
    assert answered(few, 3).independence.widened == 1
    assert answered(some, 3).independence.widened > 1


@pytest.mark.parametrize("copies", [0.0, 0.1])
@pytest.mark.parametrize(("mechanism", "memory"), PLANNED)
@pytest.mark.thinned(1)
def test_the_promise_of_a_candidate_is_kept(mechanism, memory, copies):
    """At the planned frequency 95% are listed: of 32 no fewer than 26 (0.5% by chance). At 0.6 of it about 15% are."""
    found, listed = planned(mechanism, memory, dictionary=CANDIDATES, copies=copies), {1.0: [], 0.6: []}
    for seed in range(4):
        words = candidates(seed)
        named = {multiple: words[8 * place : 8 * place + 8] for place, multiple in enumerate(listed)}
        popular = {item: round(m * found.candidate) for m, items in named.items() for item in items}
        spec, oracle = counted(found, popular, seed)
        answer = {row.item for row in decode(spec, oracle, dictionary=Dictionary.of(FORTY, words)).items}
        for multiple, items in named.items():
            listed[multiple] += [item in answer for item in items]
        assert len(answer - set(popular)) <= 1
    assert sum(listed[1.0]) >= 26
    assert sum(listed[0.6]) <= 14


def test_a_dictionary_lowers_its_candidates_bars_and_raises_the_others_a_little():
    plain, small, large = (planned(PLANNED[0][0], 1 << 30, dictionary=size) for size in (0, 100, 1_000_000))
    assert plain.parameters == small.parameters == large.parameters
    assert plain.candidate is None
    assert small.candidate < 0.95 * large.candidate < 0.9 * plain.reliable
    assert plain.reliable < large.reliable < 1.02 * plain.reliable
    assert small.reliable == large.reliable
    assert plain.users_needed <= large.users_needed
    assert large.memory_bytes > plain.memory_bytes + 50 * 1_000_000
    assert large.seconds > plain.seconds


def peak(found, size):
    """The most bytes that a decoding with so many candidates has at once, beside the reports."""
    spec, oracle = counted(found, {5: 4000}, 1)
    words = Dictionary(from_ints(candidates(1, size), FORTY.bits), np.full(size, -math.log(size)))
    tracemalloc.start()
    decode(spec, oracle, dictionary=words)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["expander-sketch", "tree-sketch"])
def test_the_memory_of_candidates_is_planned(mechanism):
    """What 800,000 more of them take is at most what is planned for them, and not far less."""
    few, many = (planned(mechanism, 400 << 20, dictionary=size) for size in (400_000, 1_200_000))
    assert few.parameters == many.parameters
    more = peak(few, 1_200_000) - peak(few, 400_000)
    assert 0.4 < more / (many.memory_bytes - few.memory_bytes) <= 1.0


def test_plans_offer_a_dictionary_where_the_decoder_takes_one():
    honest = {found.mechanism: found for found in plans(COUNT, FORTY, "3", memory=300 << 20)}
    for found in plans(COUNT, FORTY, "3", memory=300 << 20, dictionary=CANDIDATES):
        spec = create("takes", FORTY, "3", found, opens=0, closes=1)
        assert begins_with_items(oracle_for(spec)) == (found.candidate is not None)
        if found.candidate is None:
            assert found.reliable == honest[found.mechanism].reliable
            assert "takes no dictionary" in found.promise


def test_a_plan_says_with_what_it_was_made():
    found = planned(*PLANNED[0], dictionary=CANDIDATES, copies=0.1)
    assert f"{CANDIDATES:,} candidates" in found.promise
    assert f"{math.ceil(found.candidate):,} of {COUNT:,} users" in found.promise
    assert "10% of all reports being copies" in found.promise
    assert f"count as {COUNT / found.factor:,.0f}" in found.promise
    assert "not noticed" in planned(*PLANNED[0], copies=0.001).promise
    plain = planned(*PLANNED[0])
    assert "dictionary" not in plain.promise
    assert "copies" not in plain.promise
    assert "candidate" not in table([plain])
    assert f"{math.ceil(found.candidate):,}" in table([found])
    assert "candidate from" in table([found])


def test_too_few_users_may_still_list_candidates():
    least = plan(100_000, Strings(32), "0.5", dictionary=1).users_needed
    found = plan(round(0.8 * least), Strings(32), "0.5", dictionary=1)
    assert not found.enough
    assert found.candidate <= found.users
    assert "that the dictionary does not name" in found.promise
    assert f"{math.ceil(found.candidate):,} of" in found.promise
    none = plan(100, Strings(32), "0.5", dictionary=1000, copies=0.1)
    assert none.candidate > none.users
    assert "not be listed either" in none.promise
    assert "> 100" in table([none])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"copies": -0.01}, "from 0 to below 0.5"),
        ({"copies": 0.5}, "from 0 to below 0.5"),
        ({"copies": math.nan}, "from 0 to below 0.5"),
        ({"dictionary": -1}, "number of its candidates"),
        ({"dictionary": MOST_ITEMS + 1}, f"from 1 to {MOST_ITEMS:,}"),
    ],
)
def test_a_dictionary_or_copies_that_cannot_be_are_refused(asked, words):
    with pytest.raises(InvalidSpec, match=words) as caught:
        plan(COUNT, FORTY, "3", **asked)
    assert "\n" not in str(caught.value)


def test_a_dictionary_is_not_larger_than_its_domain():
    small = Integers(0, 1000)
    assert plan(COUNT, small, "3", dictionary=small.size - 1).candidate is not None
    with pytest.raises(InvalidSpec, match="from 1 to"):
        plan(COUNT, small, "3", dictionary=small.size)


def test_copies_that_the_decoder_would_refuse_are_refused():
    with pytest.raises(NotIndependent, match="plan for fewer copies"):
        planned(*PLANNED[0], copies=0.499)
    assert planned(*PLANNED[0], copies=0.45).factor > 1.9

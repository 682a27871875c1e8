"""The expander is a simple d-regular graph with reverse slots, the same on every machine."""

from __future__ import annotations

import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.expander import Expander
from ldp_server.heavy_hitters.paper.expansion import second_eigenvalue

SEED = bytes(range(32))


def made(teams, degree, seed=SEED):
    for attempt in range(2000):
        try:
            return Expander(seed, "test", teams, degree, attempt)
        except InvalidSpec as error:
            assert "double edge" in str(error)
    raise AssertionError("no attempt gave a graph")


@pytest.mark.parametrize(
    ("teams", "degree"), [(2, 1), (3, 2), (5, 2), (5, 4), (6, 3), (12, 3), (16, 4), (18, 2), (24, 5)]
)
def test_regular_simple_and_symmetric(teams, degree):
    graph = made(teams, degree)
    for team, row in enumerate(graph.neighbours):
        assert len(set(row)) == degree
        assert team not in row
        for slot, other in enumerate(row):
            assert graph.neighbours[other][graph.reverse[slot]] == team


def test_known_eigenvalues():
    assert second_eigenvalue(made(5, 2)) == pytest.approx(1.618, abs=1e-3)  # a cycle of five: 2 cos(4 pi / 5)
    assert second_eigenvalue(made(5, 4)) == pytest.approx(1.0)  # the complete graph
    assert second_eigenvalue(made(6, 2)) == pytest.approx(2.0)  # an even cycle is bipartite


def test_random_graphs_expand():
    """Near 2 sqrt(d-1), as random regular graphs do: some attempt among a few is well below d."""
    values = []
    for attempt in range(400):
        try:
            values.append(second_eigenvalue(Expander(SEED, "test", 16, 4, attempt)))
        except InvalidSpec:
            continue
    assert min(values) < 2 * 3**0.5
    assert max(values) > min(values) + 0.2


def test_attempts_differ_and_repeat():
    graphs = set()
    for attempt in range(12):
        graphs.add(Expander(SEED, "test", 12, 2, attempt).neighbours)
    assert len(graphs) > 8
    assert made(12, 3).neighbours == made(12, 3).neighbours


@pytest.mark.parametrize(
    ("teams", "degree", "attempt"), [(1, 1, 0), (65, 2, 0), (5, 3, 0), (5, 5, 0), (5, 0, 0), (5, 2, 1 << 16), (2, 2, 0)]
)
def test_what_is_no_graph_is_refused(teams, degree, attempt):
    with pytest.raises(InvalidSpec):
        Expander(SEED, "test", teams, degree, attempt)


@pytest.mark.parametrize(("teams", "degree", "attempt"), [(2, 1, 65535), (64, 63, 0), (3, 2, 0), (64, 1, 65535)])
def test_the_ends_of_the_ranges_are_graphs(teams, degree, attempt):
    """A graph, or at least one that could be: an attempt may have a double edge."""
    try:
        assert len(Expander(SEED, "test", teams, degree, attempt).neighbours) == teams
    except InvalidSpec as error:
        assert "double edge" in str(error)


@pytest.mark.parametrize(
    ("teams", "degree", "attempt", "message"),
    [
        (1, 1, 0, "2 to 64 teams, not 1"),
        (65, 2, 0, "2 to 64 teams, not 65"),
        (4, 0, 0, "0-regular"),
        (4, 4, 0, "4-regular"),
        (5, 3, 0, "3-regular"),
        (2, 2, 0, "2-regular"),
        (4, 2, -1, "attempt number"),
        (4, 2, 65536, "attempt number"),
    ],
)
def test_a_refusal_says_what_is_wrong(teams, degree, attempt, message):
    with pytest.raises(InvalidSpec, match=message):
        Expander(SEED, "test", teams, degree, attempt)


def test_a_shuffle_by_hand():
    """Word i picks a place among the first count - i, and swaps it with the last of them."""
    from ldp_client.protocol.expander import _shuffled

    top = (1 << 64) - 1
    assert _shuffled((top, top, top), 4) == [0, 1, 2, 3]
    assert _shuffled((0, 0, 0), 4) == [1, 2, 3, 0]
    assert _shuffled((1 << 62, 0, top), 4) == [2, 3, 0, 1]
    counts = {tuple(_shuffled((a << 62, b * (1 << 64) // 3 + 1, c << 63), 4)) for a in range(4) for b in range(3)
              for c in range(2)}  # fmt: skip
    assert len(counts) == 24

"""Tables by differences: the best ones against the linear programme of all tables, and bounds that hold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.shifted_channel import ShiftedChannel
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.planning.channels import ChannelGoal, compile_channel, line_distances, named_loss
from ldp_server.planning.shifts import Shape, design_shifts
from tests.examples import whole_table


def distances_of(made):
    """Of every two elements, from the axes."""

    def apart(axis, one, other):
        if one == other:
            return 0
        if not one or not other:
            return axis.reach
        off = abs(one - other)
        return axis.step * (min(off, axis.places - off) if axis.ring else off)

    def parts(index):
        return [index // stride % size for stride, size in made.steps]

    return tuple(
        sum(apart(axis, one, other) for axis, one, other in zip(made.axes, parts(x), parts(z), strict=True))
        for x in range(made.size)
        for z in range(x + 1, made.size)
    )


@pytest.mark.parametrize(
    ("domain", "shapes", "epsilon"),
    [
        (Integers(0, 9), [Shape()], "4"),
        (Integers(0, 12), [Shape(ring=True)], "1"),
        (Record((Field("x", Integers(0, 3)), Field("y", Integers(0, 4)))), [Shape(), Shape(ring=True, step=2)], "3"),
        (Record((Field("a", YesNo()), Field("b", Categories(("one",))))), [Shape(), Shape(step=3)], "0.5"),
    ],
)
def test_where_only_the_truth_counts_it_is_the_best_of_all_tables(domain, shapes, epsilon):
    found = design_shifts(Epsilon(epsilon), domain, shapes)
    k = found.randomizer.size
    best = compile_channel(ChannelGoal(Epsilon(epsilon), named_loss("truth", k), distances_of(found.randomizer)))
    assert found.best
    assert found.expected_loss == pytest.approx(best.least_loss, rel=1e-9)
    assert found.least_loss == pytest.approx(best.least_loss, rel=1e-9)
    table = whole_table(found.randomizer)
    assert found.expected_loss == pytest.approx(1 - np.trace(table) / k, rel=1e-12)


def test_a_line_is_the_table_that_the_programme_gives():
    found = design_shifts(Epsilon("4"), Integers(1, 9), [Shape()])
    known = compile_channel(ChannelGoal(Epsilon("4"), named_loss("truth", 10), line_distances(10))).randomizer
    assert np.abs(whole_table(found.randomizer) - np.array(known.lines, float) / 2**64).max() < 1e-10


@pytest.mark.parametrize("loss", ["absolute", "squared"])
@pytest.mark.parametrize("ring", [False, True])
@pytest.mark.parametrize("places", [2, 7, 8])
def test_the_loss_is_that_of_the_table_and_above_the_bound(loss, ring, places):
    """The bound is that of the programme for the places without none, which is left out of it."""
    found = design_shifts(Epsilon("3"), Integers(0, places), [Shape(ring=ring)], loss)
    off = np.abs(np.arange(places)[:, None] - np.arange(places)).astype(float)
    if ring:
        off = np.minimum(off, places - off)
    power = {"absolute": 1, "squared": 2}[loss]
    whole = np.zeros((places + 1, places + 1))
    whole[1:, 1:] = off**power
    whole[0, 1:] = whole[1:, 0] = (places // 2 if ring else places - 1) ** power
    assert found.expected_loss == pytest.approx((whole_table(found.randomizer) * whole).sum() / (places + 1), rel=1e-9)
    distances = tuple(int(off[x, z]) for x in range(places) for z in range(x + 1, places))
    best = compile_channel(ChannelGoal(Epsilon("3"), off**power, distances))
    assert found.least_loss == pytest.approx(best.least_loss * places / (places + 1), rel=1e-6)
    assert found.expected_loss >= found.least_loss
    moves = np.array(found.randomizer.axes[0].moves, float) / 2**64
    if ring:
        assert float(moves @ off[0] ** power) == pytest.approx(best.least_loss, rel=1e-6)


def test_the_bound_of_a_long_line_holds_and_is_not_idle():
    """Against the programme of 44 places, of which the bound looks at every second one."""
    for loss in ("absolute", "squared"):
        found = design_shifts(Epsilon("4"), Integers(0, 44), [Shape()], loss)
        off = np.abs(np.arange(44)[:, None] - np.arange(44)).astype(float) ** {"absolute": 1, "squared": 2}[loss]
        distances = tuple(z - x for x in range(44) for z in range(x + 1, 44))
        best = compile_channel(ChannelGoal(Epsilon("4"), off, distances)).least_loss * 44 / 45
        assert 0.75 * best < found.least_loss <= best * (1 + 1e-9)
        assert not found.best
        assert best <= found.expected_loss


def test_fields_add_up():
    both = Record((Field("x", Integers(0, 5)), Field("y", Integers(0, 9))))
    found = design_shifts(Epsilon("5"), both, [Shape(step=2), Shape(ring=True)], "absolute")
    furthest = 2 * 4 + 4
    parts = [
        design_shifts(Epsilon.parse(f"{5 * reach / furthest:.9f}"), Integers(0, count), [Shape(ring=ring)], "absolute")
        for count, ring, reach in ((5, False, 8), (9, True, 4))
    ]
    assert found.expected_loss == pytest.approx(sum(part.expected_loss for part in parts), rel=1e-6)
    assert found.least_loss == pytest.approx(sum(part.least_loss for part in parts), rel=1e-6)
    assert found.randomizer.furthest == furthest


def test_a_grid_of_64_by_64_and_a_line_of_4096():
    grid = Record((Field("x", Integers(0, 64)), Field("y", Integers(0, 64))))
    for domain, shapes, epsilon in ((grid, [Shape(), Shape()], "8"), (Integers(0, 4096), [Shape()], "4")):
        found = design_shifts(Epsilon(epsilon), domain, shapes)
        assert found.best
        assert found.expected_loss == pytest.approx(found.least_loss, rel=1e-9)
        assert math.log(found.randomizer.ratio) == pytest.approx(float(epsilon), rel=1e-8)
        assert ShiftedChannel.build(Epsilon(epsilon), domain, b"", found.randomizer.parameters()) == found.randomizer


@pytest.mark.parametrize(
    ("shapes", "loss", "text"),
    [
        ([Shape()], "cubed", "truth, absolute or squared, not 'cubed'"),
        ([Shape(), Shape()], "truth", "1 axes take as many shapes, not 2"),
        ([Shape(step=0)], "truth", "a step is a whole number"),
    ],
)
def test_what_cannot_be_designed(shapes, loss, text):
    with pytest.raises(InvalidSpec, match=text):
        design_shifts(Epsilon("1"), Integers(0, 5), shapes, loss)

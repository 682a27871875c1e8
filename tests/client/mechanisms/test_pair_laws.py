"""What every pair law adds up to, and the laws of small mechanisms from their definition."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

from ldp_client.mechanisms import bounded_number
from ldp_client.mechanisms.bounded_number import BoundedNumber
from ldp_client.mechanisms.randomized_response import Response
from ldp_client.mechanisms.shared.pair_law import Atom, clones, merged, mixed, together, uniform
from ldp_client.mechanisms.shared.team_sketch import TeamSketch
from ldp_client.protocol.epsilon import Epsilon
from tests.examples import FULL, label

F = Fraction


@pytest.mark.parametrize("randomizer", FULL, ids=label)
def test_both_laws_of_a_pair_are_probabilities(randomizer):
    """Each adds up to 1, but for what is rounded at 2^-64; so does the mass of the blanket to at most 1."""
    for law in randomizer.pair_laws:
        first, second, shares = (sum(one) for one in zip(*(_masses(atom) for atom in law), strict=True))
        assert 1 - 1e-9 < second <= first < 1 + 1e-9
        assert 0 < shares <= 1
        assert any(atom.first != atom.second for atom in law)  # it is about two different items
        assert all(atom.first >= 1 - F(1, 10**9) and atom.second >= 1 - F(1, 10**9) for atom in law)
        assert max(max(atom.first / atom.second, atom.second / atom.first) for atom in law) <= randomizer.ratio * (
            1 + F(1, 10**9)
        )


def _masses(atom):
    return atom.share * atom.first, atom.share * atom.second, atom.share


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("bits", [5, 64])
def test_two_answers_of_randomized_response(k, bits):
    """Different truths, and twice the same: from the weights themselves, answer by answer."""
    response = Response(Epsilon("1"), k, bits)
    total, spare = 1 << bits, response.spare // response.k
    high, low = F(response.truth + spare, total), F(response.lie + spare, total)
    told = F(response.truth + spare, response.lie + spare)
    assert response.ratio == told
    one = F(1)
    different = [Atom(low, told, one), Atom(low, one, told), *[Atom(low, one, one)] * (k - 2)]
    assert sorted(response.different) == sorted(merged(different))
    assert sorted(response.same) == sorted(merged([Atom(low, told, told), *[Atom(low, one, one)] * (k - 1)]))
    for law in (response.different, response.same):
        assert sum(atom.share * atom.first for atom in law) == high + (k - 1) * low


def test_equal_atoms_are_one_and_empty_ones_none():
    law = merged([Atom(F(1, 4), F(2), F(1)), Atom(F(0), F(9), F(9)), Atom(F(1, 3), F(2), F(1))])
    assert law == (Atom(F(7, 12), F(2), F(1)),)
    law = uniform(F(1, 8), F(3), 2, 1, 4)
    assert {(a.first, a.second): a.share for a in law} == {
        (3, 1): F(1, 4), (1, 3): F(1, 4), (1, 1): F(1, 8), (3, 3): F(1, 2)
    }  # fmt: skip
    assert uniform(F(1, 8), F(3), 2, 0) == (Atom(F(1, 4), F(3), F(1)), Atom(F(1, 4), F(1), F(3)))


def test_a_public_draw_mixes_and_two_reports_multiply():
    one, other = uniform(F(1, 4), F(3), 1, 0), uniform(F(1, 2), F(2), 1, 0)
    law = mixed([(F(1, 3), one), (F(2, 3), other)])
    assert {(a.first, a.second): a.share for a in law} == {
        (3, 1): F(1, 12), (1, 3): F(1, 12), (2, 1): F(1, 3), (1, 2): F(1, 3)
    }  # fmt: skip
    both = {(a.first, a.second): a.share for a in together(one, other)}
    assert both == {(6, 1): F(1, 8), (3, 2): F(1, 8), (2, 3): F(1, 8), (1, 6): F(1, 8)}
    assert sum(both.values()) == sum(a.share for a in one) * sum(a.share for a in other)


@pytest.mark.parametrize("ratio", [F(1), F(3, 2), F(20)])
def test_clones(ratio):
    """Half of the mass each, mirrored; at the ratio apart; each law adds up to 1."""
    one, other = clones(ratio)
    assert one.share == other.share == 1 / (2 * ratio)
    assert (one.first, one.second) == (other.second, other.first)
    assert one.first / one.second == ratio
    assert one.share * one.first + other.share * other.first == 1


SKETCHES = [one for one in FULL if isinstance(one, TeamSketch)]


@pytest.mark.parametrize("sketch", SKETCHES, ids=label)
def test_a_team_s_cells(sketch):
    """The cells that a team may use are as many as it says, and no element has another one."""
    q, t = sketch.inner.q, sketch.inner.t
    assert 2 <= sketch.cells <= q**t
    teams = sorted({0, sketch.teams // 2, sketch.teams - 1})
    elements = [1, 2, 5, sketch.size // 3, sketch.size - 1]
    found = [sketch.cell(index, team) for index, team in itertools.product(elements, teams)]
    assert all(0 <= cell < sketch.cells for cell in found)
    if sketch.name in {"tree-sketch", "prefix-tree"}:
        assert sketch.cells == 1 << sketch.parameters()["cell_bits"]


@pytest.mark.parametrize("presence", [0, 64, 255])
def test_the_role_of_a_number_s_report_is_drawn(presence):
    """Of 256 devices so many are asked whether they have a number; what they answer has its own law."""
    made = BoundedNumber(Epsilon("1"), 50, 6, 2, presence)
    (found,) = made.pair_laws
    asked = F(presence, 256)
    assert found == mixed([(asked, made.response.different), (1 - asked, made.law.different)])
    masses = [sum(atom.share for atom in law) for law in (found, made.response.different, made.law.different)]
    assert masses[0] == asked * masses[1] + (1 - asked) * masses[2]
    for index in (0, 1, 49):
        assert sum(made.probability(index, made.answers + told) for told in (0, 1)) == asked
        assert sum(made.probability(index, report) for report in range(made.answers)) == 1 - asked
    assert made.ratio == (max(made.law.ratio, made.response.ratio) if presence else made.law.ratio)


def test_a_design_asks_everybody_for_a_number():
    assert bounded_number.design("1")["presence"] == 0
    assert bounded_number.design("1", presence=7)["presence"] == 7

"""Every mechanism's reports are judged: honest ones of any crowd pass, copies are seen where they can be."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_client.mechanisms.hashtogram import Hashtogram
from ldp_client.mechanisms.hierarchy import Hierarchy, design
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from ldp_server.oracles.independence.judge import FALSE_ALARMS, accepted, expected_widening, judged, pairs_of, widening
from ldp_server.oracles.independence.result import NotIndependent
from tests.examples import SEED, label
from tests.server.oracles.cases import EVERY, indexes_of, reports_of

EPS = Epsilon.parse("1")
POINTED = {
    "linear-hash": LinearHash(EPS, 2000, 3, 7),
    "hashtogram": Hashtogram(EPS, 5000, SEED, 4, 3, 7),
    "hierarchy": Hierarchy(EPS, 4001, **design("1", 4000)),
}
UNPOINTED = {"randomized-response", "subset-selection", "composed-response", "bounded-number", "sampled-attribute"}
USERS = 20_000


def held_by(randomizer, users):
    return indexes_of(randomizer, np.asarray(users).tolist())


def filled_with(randomizer, reports):
    oracle = oracle_for(randomizer)
    oracle.accumulate(pack(np.asarray(reports), randomizer.report_bytes))
    return oracle


def copied(randomizer, part, seed, users=USERS):
    """Reports of a skewed crowd, a part of them copies of others."""
    held = np.minimum(np.random.default_rng(seed).geometric(0.2, users), randomizer.size - 1)
    made, again = reports_of(randomizer, held_by(randomizer, held), seed), round(part * users)
    return np.concatenate([made[: users - again], made[:again]])


@pytest.mark.parametrize("randomizer", EVERY, ids=label)
@pytest.mark.parametrize("crowd_kind", ["one item", "skewed"])
@pytest.mark.thinned(1)
def test_no_honest_crowd_is_warned_about(randomizer, crowd_kind):
    spread = np.random.default_rng(1).integers(0, min(randomizer.size, 2000), 3000)
    users = np.full(3000, 1) if crowd_kind == "one item" else spread
    oracle = filled_with(randomizer, reports_of(randomizer, held_by(randomizer, users), 6))
    honest, found = judged(oracle)
    assert honest is oracle
    assert found.warnings == ()
    assert (found.widened, found.cut) == (1, 0)
    assert abs(found.z) < 6
    if randomizer.name in UNPOINTED:
        assert found.visible_from is None
        assert "cannot be seen" in found.line


def test_the_tests_share_the_false_alarms():
    assert FALSE_ALARMS == 1e-6


@pytest.mark.parametrize("name", POINTED)
def test_copies_are_seen_and_their_factor_is_right(name):
    """18% of copies make the variance 1.36 times as large; the errors that are stated are those of that."""
    randomizer = POINTED[name]
    _, found = judged(filled_with(randomizer, copied(randomizer, 0.18, 2)))
    assert len(found.warnings) == 1
    assert "are not independent" in found.warnings[0]
    assert found.variance_factor == pytest.approx(1.36, abs=0.3)  # five standard deviations
    assert 1.02 * found.variance_factor <= found.widened <= 1.25 * found.variance_factor
    assert found.visible_from < 0.18
    _, few = judged(filled_with(randomizer, copied(randomizer, found.visible_from / 8, 3)))
    assert few.warnings == ()


def test_the_stated_errors_are_those_of_copied_reports():
    """Over 50 runs at 18% they are, within 7%; without the correction they are a seventh too small."""
    randomizer, scores, plain = POINTED["linear-hash"], [], []
    items = np.arange(200, 400, dtype=np.uint64)  # hardly anybody holds them
    for run in range(50):
        oracle, _ = accepted(filled_with(randomizer, copied(randomizer, 0.18, 100 + run, 8000)))
        raw = oracle.estimate(items)
        errors = oracle.standard_errors(items, raw)
        plain.append(raw / errors)
        scores.append(raw / widening(oracle).errors(errors))
    assert np.std(plain) > 1.12
    assert np.std(scores) == pytest.approx(0.95, abs=0.07)


def test_more_copies_than_reports_are_refused():
    randomizer = POINTED["linear-hash"]
    made = copied(randomizer, 0.0, 4)
    oracle = filled_with(randomizer, np.repeat(made, 3))
    assert judged(oracle)[1].variance_factor == pytest.approx(3, abs=0.2)
    with pytest.raises(NotIndependent, match="nothing is estimated"):
        accepted(oracle)


def test_one_report_sent_very_often_is_cut():
    """The estimates are then those of the other reports; the state itself is not changed."""
    randomizer = POINTED["linear-hash"]
    made = copied(randomizer, 0.0, 5)
    oracle = filled_with(randomizer, np.concatenate([made, np.full(5000, made[0])]))
    honest, found = accepted(oracle)
    assert 4900 < found.cut <= 5000
    assert honest.reports == oracle.reports - found.cut
    assert f"{found.cut:,} reports are left out" in found.warnings[0]
    assert int(oracle.counts.values.sum()) == oracle.reports == len(made) + 5000
    moved = honest.estimate_all() - filled_with(randomizer, made).estimate_all()
    assert np.abs(moved).max() < 300 < np.abs(oracle.estimate_all() - honest.estimate_all()).max()


def test_teams_that_are_drawn_wrongly_are_seen():
    randomizer = POINTED["hashtogram"]
    made = copied(randomizer, 0.0, 6)
    kept = made[(made // randomizer.inner.bound != 2) | (np.arange(len(made)) % 4 > 0)]  # a quarter of team 2 is lost
    warnings = judged(filled_with(randomizer, kept))[1].warnings
    assert any("teams' sizes" in warning for warning in warnings)


def test_counts_that_no_users_can_give_are_seen():
    """Without points: an answer that is given more often than if everybody held it."""
    randomizer = RandomizedResponse(EPS, 6)
    made = reports_of(randomizer, held_by(randomizer, np.full(5000, 3)), 7)
    assert judged(filled_with(randomizer, made))[1].warnings == ()
    wrong = np.concatenate([made, np.full(600, 3)])
    assert "than any honest users" in judged(filled_with(randomizer, wrong))[1].warnings[0]


def test_a_judgement_ends_with_the_counts_it_is_about():
    randomizer = POINTED["linear-hash"]
    made = copied(randomizer, 0.0, 8)
    oracle = filled_with(randomizer, made)
    assert judged(oracle)[1].warnings == ()
    oracle.accumulate(pack(made, randomizer.report_bytes))
    assert judged(oracle)[1].warnings
    merged = filled_with(randomizer, made)
    assert judged(merged)[1].warnings == ()
    merged.merge(filled_with(randomizer, made))
    assert judged(merged)[1] == judged(oracle)[1]
    restored = type(oracle).from_bytes(randomizer, oracle.to_bytes())
    assert judged(restored)[1] == judged(oracle)[1]


@pytest.mark.parametrize("part", [0.0, 0.11, 0.2, 0.3])
def test_the_widening_that_plans_expect_is_the_mean_after_a_warning(part):
    """Of 30 runs, to 4 standard errors. At 0.11 half of the runs are warned about, and the mean is theirs."""
    randomizer = POINTED["linear-hash"]
    found = [judged(filled_with(randomizer, copied(randomizer, part, 300 + run)))[1].widened for run in range(30)]
    (draw,) = pairs_of(filled_with(randomizer, copied(randomizer, part, 300)))
    expected = expected_widening([(draw.draws, draw.values)], part)
    warned = [one for one in found if one > 1]
    if not part:
        assert expected == 1
        assert not warned
        return
    assert len(warned) == 30 if part > 0.11 else 5 <= len(warned) <= 25
    room = 4 * (1 + 2 * part) * (2 / draw.values) ** 0.5 / max(1, len(warned)) ** 0.5
    assert np.mean(warned) == pytest.approx(expected, rel=room)


def test_reports_that_would_hardly_be_warned_about_are_planned_as_independent():
    draws = [(20_000, 100_000)]
    assert expected_widening([], 0.2) == 1
    assert expected_widening(draws, 0.001) == 1
    growing = [expected_widening(draws, part) for part in (0.001, 0.01, 0.02, 0.1, 0.4)]
    assert growing == sorted(growing)
    with pytest.raises(NotIndependent, match="plan for fewer copies"):
        expected_widening(draws, 0.499)

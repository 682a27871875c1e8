"""The law of mixtures against elements that are counted, and the bars that follow from it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from ldp_client.protocol.domain import Integers, Strings
from ldp_server.arrays.team_cells import bulk_code
from ldp_server.heavy_hitters.search.mixtures import Mixtures, step_down
from ldp_server.heavy_hitters.search.model import Model
from ldp_server.heavy_hitters.search.rounds import decode_scores
from ldp_server.heavy_hitters.search.scores import TeamScores
from tests.server.heavy_hitters.cases import EXPANDER, TREE, collection
from tests.server.heavy_hitters.search.test_model import CODE, NOISE, SETTINGS, TEAMS, message, put, scores

SMALL = {"first_bits": 8, "step_bits": 4, "cell_bits": 10, "q": 7, "t": 4, "check_levels": 2}
DOMAIN = Integers(0, (1 << 20) - 1)


def by_noise(bar):
    """How many of nobody's elements the noise is expected to lift above a bar, by the binomial law."""
    n, s = NOISE.reports, NOISE.support
    reached = math.ceil(n * s + bar * math.sqrt(n * s * (1 - s)))
    return float(2.0**CODE.bits * stats.binom.sf(reached - 1, n, s))


def model_of(arrays, noise=NOISE, only_best=0):
    weights = np.full(len(arrays), 1 / math.sqrt(len(arrays)))
    return Model([TeamScores(part.copy(), 200_000, only_best) for part in arrays], weights, noise)


def noise_of(code, rng):
    return [rng.standard_normal(1 << code.cell_bits).astype(np.float32) for _ in range(code.teams)]


def every_score(code, arrays):
    """The cells and the scores of all elements."""
    messages = code.messages(np.arange(1 << code.bits, dtype=np.uint64))
    cells = code.cells(messages)
    return cells, sum(arrays[team][cells[:, team]].astype(float) for team in range(code.teams)) / math.sqrt(code.teams)


@pytest.mark.parametrize(("held", "value", "least"), [(0, 0.0, 3.6), (12, 2.2, 4.4), (40, 2.2, 4.8)])
def test_the_number_is_that_of_elements_that_combine_cells(held, value, least):
    """All of 2^20 elements, for 8 seeds. Those that share two cells with one item are no mixtures of several."""
    counted, expected, by_noise = 0, 0.0, (1 << 20) * 8 * stats.norm.sf(least)
    for nonce in range(8):
        code = bulk_code(collection("tree-sketch", SMALL, domain=DOMAIN, nonce=nonce).randomizer)
        rng = np.random.default_rng(nonce)
        arrays = noise_of(code, rng)
        items = code.cells(code.messages(rng.integers(0, 1 << 20, held).astype(np.uint64)))
        for cells in items:
            for team, cell in enumerate(cells):
                arrays[team][cell] += value
        cells, z = every_score(code, arrays)
        high = np.flatnonzero(z >= least)
        shared = (cells[high][:, None, :] == items[None]).sum(axis=2).max(axis=1, initial=0)
        counted += int((shared < 2).sum())
        expected += Mixtures(code, model_of(arrays), 20 * math.log(2), None).expected(least)
    assert 0.7 * expected < counted < 1.3 * expected
    if held:
        assert counted > 3 * by_noise
    else:
        assert expected == pytest.approx(by_noise, rel=0.25)


@pytest.mark.parametrize(
    "randomizer",
    [
        collection("tree-sketch", TREE).randomizer,
        collection("tree-sketch", SMALL, domain=DOMAIN).randomizer,
        collection("expander-sketch", EXPANDER).randomizer,
        collection("expander-sketch", EXPANDER, domain=Strings(4)).randomizer,
    ],
)
def test_the_cells_that_elements_have(randomizer):
    """Bits of the padding are 0 in every element's cell, and no others are."""
    code = bulk_code(randomizer)
    rng = np.random.default_rng(1)
    cells = code.cells(rng.integers(0, [1 << width for width in code.widths], (4000, len(code.widths))))
    for team in range(code.teams):
        used = int(np.bitwise_or.reduce(cells[:, team]))
        assert used == (1 << code.cell_bits) - 1 - code.padding(team)


def test_the_noise_is_that_of_the_threshold():
    """From all cells, and from the best of a team alone."""
    for only_best in (0, 1 << 7):
        rng = np.random.default_rng(4)
        model = model_of([rng.standard_normal(1 << CODE.cell_bits) for _ in range(TEAMS)], only_best=only_best)
        law = Mixtures(CODE, model, 40 * math.log(2), None)
        assert math.log(law.expected(5.0)) == pytest.approx(40 * math.log(2) + stats.norm.logsf(5.0), abs=0.3)
        assert law.expected(7.0) < math.exp(40 * math.log(2) + stats.norm.logsf(7.0)), "no cell is that high"
        assert law.beyond_noise(7.0) < law.expected(7.0)
        for allowed in (0.5, 0.05, 1e-5):
            assert law.expected(law.bar(allowed)) == pytest.approx(allowed, rel=1e-4)


def test_what_is_put_back_and_taken_again_leaves_no_trace():
    rng, arrays = scores(3)
    model = model_of(arrays)
    law = Mixtures(CODE, model, 28.0, None)
    before = law.bar(0.05)
    cells = CODE.cells(np.concatenate([message(rng) for _ in range(9)]))
    for row in cells:
        law.put_back(row, 9.0)
    assert law.bar(0.05) > before + 0.3
    for row in cells:
        law.take(row, 9.0)
    assert law.bar(0.05) == before


def crowd(count, score, seed=7):
    rng, arrays = scores(seed)
    items = [message(rng) for _ in range(count)]
    for place, item in enumerate(items):
        put(arrays, item, [(score + 0.02 * place) / math.sqrt(TEAMS)] * TEAMS)
    model = model_of(arrays)
    for item in items:
        cells = CODE.cells(item)[0]
        model.add(cells, float(model.at(cells[None])[0] @ model.weights))
    return model


def judged(model, certain=None, allowed=0.05, threshold=7.5, part=0.0):
    passed, none = np.ones(len(model.scores), bool), np.zeros(len(model.scores), bool)
    law = Mixtures(CODE, model, CODE.bits * math.log(2), None)
    settings = replace(SETTINGS, threshold=threshold, allowed=allowed, part=part)
    return step_down(law, model, settings, passed, none if certain is None else certain)


def test_items_near_the_threshold_raise_the_bar_for_each_other():
    model = crowd(25, 8.0)
    found = judged(model)
    order = np.argsort(-model.scores, kind="stable")
    assert (np.diff(found.bars[order][np.isfinite(found.bars[order])]) <= 0).all(), "each listed item lowers the bar"
    assert found.bars[order[0]] > 7.9
    assert (found.bar, found.expected) == (7.5, 0.0), "all are listed, so nothing is left to combine"
    few = crowd(2, 8.0)
    assert (judged(few).bars == 7.5).all()


def test_below_the_first_item_that_fails_none_is_listed():
    model = crowd(25, 7.4)
    found = judged(model, allowed=1e-3)
    listed = model.scores >= found.bars
    assert 0 <= listed.sum() < 25
    assert np.isinf(found.bars[np.argsort(-model.scores)[listed.sum() + 1 :]]).all()
    assert found.expected <= 1e-3


def test_what_is_certain_is_explained_and_not_judged():
    model = crowd(25, 8.0)
    found = judged(model, certain=np.arange(25) != 3)
    assert (found.bars[np.arange(25) != 3] == 7.5).all()
    assert found.bar == pytest.approx(judged(crowd(1, 8.0)).bar)
    clear = crowd(25, 7.6)
    clear.scores = clear.scores + 10.0  # as if their cells were far above what the others explain
    assert (judged(clear).bars == 7.5).all()


def test_of_an_exploratory_list_a_part_may_be_false():
    """The k-th item must reach the bar above which k times that part of nobody's elements are expected."""
    model = crowd(25, 7.0)
    ordinary, found = judged(model, allowed=0.05, threshold=6.5), judged(model, allowed=0.05, threshold=6.5, part=0.05)
    order = np.argsort(-model.scores, kind="stable")
    listed = np.isfinite(found.bars) & (model.scores >= found.bars)
    assert (model.scores >= ordinary.bars).sum() < listed.sum()
    assert ordinary.bars[order[0]] <= found.bars[order[0]] < ordinary.bars[order[0]] + 0.1
    law = Mixtures(CODE, model, CODE.bits * math.log(2), None)
    for place in order:
        law.put_back(model.cells[place], float(model.scores[place]))
    for rank, place in enumerate(order[: listed.sum()], 1):
        bar = found.bars[place]
        assert law.expected(bar) <= 0.05 * rank * 1.001
        assert by_noise(bar) <= 0.05 * rank * 1.001
        law.take(model.cells[place], float(model.scores[place]))


def test_an_exploratory_list_of_nothing_is_empty_but_for_one_in_twenty():
    """With one item allowed for 0.05 false ones, the first bar is that of an ordinary list."""
    rng = np.random.default_rng(5)
    model = model_of([rng.standard_normal(1 << CODE.cell_bits) for _ in range(TEAMS)])
    found = judged(model, allowed=0.05, threshold=1.0, part=0.05)
    assert by_noise(found.bar) == pytest.approx(0.05, rel=0.03)  # a count is a whole number


@pytest.mark.parametrize("value", [0.0, -3.0, 1e4, 3e38])
def test_cells_of_any_value_give_a_bar(value):
    """All the same, or far beyond what honest reports can give."""
    arrays = [np.full(1 << CODE.cell_bits, value, np.float32) for _ in range(TEAMS)]
    for part in (arrays, [part * (np.arange(len(part)) == 5) for part in arrays]):
        law = Mixtures(CODE, model_of(part), 28.0, None)
        assert math.isfinite(law.bar(0.05))
        assert law.expected(8.0) >= 0.0


def test_a_crowd_raises_the_bar_of_its_list_and_of_its_answer():
    rng, arrays = scores(7)
    for place in range(30):
        put(arrays, message(rng), [(7.3 + 0.03 * place) / math.sqrt(TEAMS)] * TEAMS)
    settings = replace(SETTINGS, threshold=7.2, width=1 << 9, last=4, log_items=CODE.bits * math.log(2))
    teams = [[TeamScores(part.copy(), 200_000) for part in arrays] for _ in range(2)]
    every = decode_scores(CODE, teams[0], NOISE, settings)
    found = decode_scores(CODE, teams[1], NOISE, replace(settings, allowed=1e-3))
    assert every.bar == 7.2
    assert found.bar > 7.3
    assert 0 < len(found.scores) < len(every.scores)
    assert (found.scores >= found.bars).all()
    assert (found.bars >= found.bar).all()
    assert 0 <= found.mixtures <= 1e-3

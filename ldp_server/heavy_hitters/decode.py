"""From a collection and its oracle to the list of heavy hitters, for every mechanism and decoder.

    decode(collection, oracle)                         the mechanism's default decoder
    decode(collection, oracle, decoder="paths")        another one of the mechanism's
    decode(collection, oracle, start=yesterday)        begin with these items, for a list made in less time

`progress(stage, part)` is called along the way. `cancelled()` is asked often, and `Cancelled` is raised soon after it
returns True. With an `executor` (threads or processes) the teams' transforms and the searches run on it. Work and
memory are bounded by the sketch's parameters and `limits`, whatever the reports hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from typing import TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.expander_sketch import ExpanderSketch
from ldp_client.mechanisms.shared.team_sketch import TeamSketch
from ldp_client.protocol.domain import Item
from ldp_server.arrays.team_cells import BulkTreeCode
from ldp_server.heavy_hitters.copies import Copies
from ldp_server.heavy_hitters.dictionary import Dictionary
from ldp_server.heavy_hitters.paper import decoder as paper
from ldp_server.heavy_hitters.promise import BETA, EXPLORATORY, MARGINS, check_beta
from ldp_server.heavy_hitters.results import HeavyHitters
from ldp_server.heavy_hitters.run import DecodeLimits, Estimated, OnProgress, Run, Watch
from ldp_server.heavy_hitters.search import tree
from ldp_server.heavy_hitters.search.acceptance import Settings, limits_of
from ldp_server.heavy_hitters.search.rounds import Hooks, decode_scores
from ldp_server.heavy_hitters.search.scores import TeamScores
from ldp_server.heavy_hitters.search.tails import threshold
from ldp_server.oracles.base import Oracle, Unsupported
from ldp_server.oracles.expander_sketch import ExpanderSketchOracle
from ldp_server.oracles.independence.judge import accepted, judged
from ldp_server.oracles.shared.team_sketch import TeamSketchOracle

__all__ = ["DECODERS", "Means", "begins_with_items", "decode"]

_AGAINST = 3.5  # standard errors
_MOST_START = 20_000
_MOST_EXPLORED = 50
"""The last item of an exploratory list reaches the bar of so many items, however many it has."""
_LAST, _TREE_WIDER = 4, 4
"""The factors by which the last rounds' searches are wider, and all searches of a tree."""

Ints = npt.NDArray[np.int64]

DECODERS = {
    "expander-sketch": ("soft", "cluster"),
    "tree-sketch": ("paths", "levels"),
    "prefix-tree": ("levels", "paths"),
}
"""The decoders of each mechanism, the default first."""


class Means(TypedDict, total=False):
    """What a decoding calls and runs on."""

    progress: OnProgress | None
    cancelled: Callable[[], bool] | None
    executor: Executor | None


def decode(
    collection: Collection,
    oracle: Oracle,
    *,
    decoder: str | None = None,
    beta: float = BETA,
    dictionary: Dictionary | None = None,
    limits: DecodeLimits | None = None,
    start: Iterable[Item] = (),
    **means: Unpack[Means],
) -> HeavyHitters:
    """List the heavy hitters, with failure probability `beta` (Definition 3.1; promise.py says what it covers).

    Candidates of a `dictionary` are listed from lower frequencies (dictionary.py). Items of `start`, such as an earlier
    list of the same collection, are proposed before the first search. They must pass the tests of any other item, so
    they need not be independent of the reports, and those that nobody holds any more are not listed.
    """
    sketch = collection.randomizer
    if sketch.name not in DECODERS or not (isinstance(oracle, TeamSketchOracle) and isinstance(sketch, TeamSketch)):
        known = ", ".join(DECODERS)
        raise Unsupported(f"heavy hitters are found in a sketch ({known}); this collection has {sketch.name}")
    if oracle.randomizer != sketch:
        raise InvalidSpec("the oracle counts reports of another collection")
    check_beta(beta)
    name = _decoder_name(sketch, oracle, decoder)
    if dictionary is not None and _DECODE[name] is not _by_scores:
        raise Unsupported(f"{sketch.name}: the decoder {name!r} takes no dictionary; ask without one")
    first = _proposed(collection, start)
    if first and _DECODE[name] is not _by_scores:
        raise Unsupported(f"{sketch.name}: the decoder {name!r} begins with no items; ask without start")
    watch, limits = Watch(means.get("progress"), means.get("cancelled")), limits or DecodeLimits()
    if limits.exploratory and _DECODE[name] is not _by_scores:
        raise Unsupported(f"{sketch.name}: the decoder {name!r} makes no exploratory list; ask for an ordinary one")
    honest, found = judged(oracle) if limits.copies is Copies.ONCE else accepted(oracle)
    run = Run(collection, honest, name, beta, limits, watch, means.get("executor"), found, dictionary, first)
    return _DECODE[name](run) if run.reports else run.nothing()


def begins_with_items(oracle: Oracle) -> bool:
    """Return whether the usual decoder of these reports may be given a start and a dictionary."""
    if not isinstance(oracle, TeamSketchOracle) or oracle.sketch.name not in DECODERS:
        return False
    return _DECODE[_decoder_name(oracle.sketch, oracle, None)] is _by_scores


def _proposed(collection: Collection, items: Iterable[Item]) -> tuple[int, ...]:
    """Return the indexes of the items that belong to the domain; refuse more than a list can have."""
    found = tuple({index: None for item in items if (index := collection.domain.index(item))})
    if len(found) > _MOST_START:
        raise InvalidSpec(f"a search begins with at most {_MOST_START:,} items: give the most frequent ones")
    return found


def _decoder_name(sketch: TeamSketch, oracle: TeamSketchOracle, wanted: str | None) -> str:
    names = DECODERS[sketch.name]
    split = isinstance(oracle, ExpanderSketchOracle) and oracle.second is not None
    name = wanted or ("cluster" if split else names[0])
    if name not in names:
        raise InvalidSpec(f"{sketch.name} has the decoders {' and '.join(names)}")
    if split != (name == "cluster"):
        raise InvalidSpec("the decoder 'cluster' reads the paper's form only (two reports, oracle_rows above 0)")
    return name


def _by_scores(run: Run) -> HeavyHitters:
    """Decode all teams together: the decoders "soft" and "paths"."""
    counting, (candidates, part) = run.finding, run.candidates()
    most = _MOST_EXPLORED if run.limits.exploratory else 1
    least = threshold(run.worth(counting), run.support[1], run.log_items, most * part * run.false_items)
    bar = least + MARGINS[run.decoder]
    if not math.isfinite(bar):
        return run.nothing()
    width, only_best = run.limits.width, 0
    if isinstance(run.code, BulkTreeCode):  # one start instead of one in every team
        width, only_best = _TREE_WIDER * width, tree.MOST_CELLS
    teams, noise = run.scores(counting, 0 if candidates else only_best), run.noise(counting)
    settings = Settings(
        bar,
        width=width,
        last=_LAST,
        rounds=run.limits.rounds,
        most=run.limits.items,
        allowed=part * run.false_items,
        part=part * EXPLORATORY if run.limits.exploratory else 0.0,
        log_items=run.log_items,
        **limits_of(run.code),
    )

    def on_round(number: int) -> None:
        run.watch.say("search", 1 - 0.7**number)

    hooks = Hooks(run.in_domain, run.watch.tick, on_round, run.executor)
    found = decode_scores(run.code, teams, noise, settings, hooks, candidates, run.beginning if run.start else None)
    unit, indexes = run.unit(counting, noise), run.indexes(found.messages)
    named, last = found.candidates, found.bar
    mixtures = found.mixtures + float((found.doubts / (1 + found.doubts)).sum())
    if not counting.once or not len(indexes):
        return run.answer(Estimated(indexes, found.scores, found.errors, unit, last, last, found.bars, named, mixtures))
    scores, errors = run.estimated(found.messages)
    other = run.unit(run.weighed, run.noise(run.weighed))
    part = unit / other  # bars are those of the counts in which items were found; scores are now those of all reports
    bars = found.bars * part
    return run.answer(Estimated(indexes, scores, errors, other, last * part, last, bars, named, mixtures))


def _by_levels(run: Run) -> HeavyHitters:
    """Decode level by level; only the last level's users estimate the items."""
    code = run.code
    if not isinstance(code, BulkTreeCode):
        raise InvalidSpec("only trees have levels")
    counting = run.finding
    teams = run.scores(counting)
    messages = tree.levels(code, teams, run.limits.keep, run.watch.tick)
    last = len(code.starts) - 1
    users = max(1, int(teams[last].reports / counting.factor))
    bar = threshold(users, run.support[1], math.log(max(2, len(messages))), run.false_items)
    if not math.isfinite(bar):
        return run.nothing()
    z = teams[last].scores[code.block_cells(code.blocks(messages), last)].astype(float)
    chosen = np.flatnonzero(z >= bar)
    chosen = chosen[run.in_domain(messages[chosen])] if len(chosen) else chosen
    chosen = _one_per_cell(run, chosen, messages, teams)
    chosen = chosen[np.argsort(-z[chosen], kind="stable")]
    scale, noise = run.worth(counting) / users, run.noise(counting, users / run.worth(counting))
    errors = np.sqrt(noise.spread(z[chosen]) + (1 - 1 / scale) * z[chosen] / math.sqrt(users * noise.variance))
    unit = scale * run.unit(counting, noise)
    return run.answer(Estimated(run.indexes(messages[chosen]), z[chosen], errors, unit, bar, bar))


def _one_per_cell(run: Run, chosen: Ints, messages: Ints, teams: list[TeamScores]) -> Ints:
    """Leave out items that only the last level supports: wrong prefixes whose hash is that of a frequent one.

    An item whose earlier levels' estimates contradict it is left out. Of several items in one cell, the one that fits
    the earlier levels best is kept.
    """
    last = len(run.code.starts) - 1
    if not len(chosen) or last == 0:
        return chosen
    cells = run.code.cells(messages[chosen])
    values = np.stack([teams[g].scores[cells[:, g]].astype(float) for g in range(last + 1)], axis=1)
    early, z = values[:, :last].mean(axis=1), values[:, last]
    spread = np.sqrt((1 + 1 / last) * run.noise(run.finding, 1 / (last + 1)).team_spread(z) + (0.1 * z) ** 2)
    order = np.flatnonzero(early - z >= -_AGAINST * spread)
    order = order[np.argsort(-early[order], kind="stable")]
    _, first = np.unique(cells[order, last], return_index=True)
    return np.asarray(chosen[order[first]])


def _by_clusters(run: Run) -> HeavyHitters:
    """Decode the paper's form by its own decoder."""
    oracle, sketch = run.oracle, run.sketch
    if not isinstance(oracle, ExpanderSketchOracle) or not isinstance(sketch, ExpanderSketch) or not oracle.second:
        raise InvalidSpec("the cluster decoder reads the paper's form of the expander sketch")
    if sketch.symbol_pointers:
        raise InvalidSpec("the cluster decoder reads item pointers (symbol_pointers = 0)")
    scores = [team.scores for team in run.scores(run.finding)]
    indexes = paper.candidates(sketch, scores, run.log_items, run.watch.say)
    indexes = [index for index in indexes if index < run.collection.domain.size]
    confirmed = paper.confirm(oracle.second, indexes, run.false_items)
    if confirmed.least > run.reports:
        return run.nothing()
    values, unit = confirmed.estimates, confirmed.unit
    order = [int(i) for i in np.argsort(-values, kind="stable") if values[i] >= confirmed.least]
    least, chosen = confirmed.least / unit, [indexes[i] for i in order]
    listed = Estimated(chosen, values[order] / unit, confirmed.errors[order] / unit, unit, least, least)
    return run.answer(listed)


_DECODE: dict[str, Callable[[Run], HeavyHitters]] = {
    "soft": _by_scores,
    "paths": _by_scores,
    "levels": _by_levels,
    "cluster": _by_clusters,
}

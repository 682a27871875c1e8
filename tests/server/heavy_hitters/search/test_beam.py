"""A search against a plain one that keeps every path's hashes in a table and looks at all pairs."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ldp_client.protocol.domain import Integers
from ldp_server.arrays.team_cells import bulk_code
from ldp_server.heavy_hitters.search import beam
from ldp_server.heavy_hitters.search.beam import TeamCells, propose, search
from ldp_server.heavy_hitters.search.scores import TeamScores
from tests.server.heavy_hitters.cases import EXPANDER, ITEM_POINTERS, collection

MANY = EXPANDER | {"teams": 20, "chunk_bits": 6, "hash_bits": 4, "q": 5, "t": 7}
"""Hashes of 80 bits in all: more than one integer holds."""
SIX = EXPANDER | {"teams": 6, "chunk_bits": 8, "hash_bits": 2}
CASES = {
    "five teams": (EXPANDER, 40, (0, 1)),
    "two redundant teams": (SIX, 32, (0, 5)),
    "item pointers": (ITEM_POINTERS, 40, (3,)),
    "more hashes than an integer holds": (MANY, 30, (0, 17)),
}


def lists_of(parameters, bits, seed):
    domain = Integers(0, (1 << bits) - 1)
    code = bulk_code(collection("expander-sketch", parameters, domain=domain).randomizer)
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(1 << code.code.cell_bits).astype(np.float32) for _ in range(code.teams)]
    item = rng.integers(0, [1 << width for width in code.widths])[None]
    for team, cell in enumerate(code.cells(item)[0]):
        arrays[team][cell] = 5.0
    teams = [TeamScores(part, 200_000) for part in arrays]
    return code, [TeamCells(code, m, teams[m], 1 / math.sqrt(code.teams)) for m in range(code.teams)], item


def hashes_in(code, team, cells):
    """Which team's hash is what in these cells, read from their bits."""
    spec = code.code
    mask = (1 << spec.hash_bits) - 1
    own = (
        code.symbol_hashes(cells & ((1 << spec.chunk_bits) - 1), team)
        if spec.symbol_pointers
        else (cells >> spec.chunk_bits & mask)
    )
    out = {team: own}
    for place, neighbour in enumerate(spec.expander.neighbours[team]):
        out[neighbour] = cells >> (spec.pointer_shift + place * spec.hash_bits) & mask
    return out


def plain(code, lists, start, width):
    """Every path from one team: messages, best first, without a limit but the start's."""
    first = lists[start]
    best = np.argsort(-first.scores, kind="stable")[:width]
    paths = [(int(first.scores[i]), {start: int(first.cells[i])}) for i in best]
    told = [{m: h[i] for m, h in hashes_in(code, start, first.cells).items()} for i in best]
    visited = [start]
    while len(visited) < code.code.data:
        known = sum(1 << m for m in told[0])
        team = beam._next_team(visited, known, lists, 1)
        here, longer, more = lists[team], [], []
        named = hashes_in(code, team, here.cells)
        for (score, cells), hashes in zip(paths, told, strict=True):
            agree = np.ones(len(here.cells), bool)
            for m in named.keys() & hashes.keys():
                agree &= named[m] == hashes[m]
            for i in np.flatnonzero(agree):
                longer.append((score + int(here.scores[i]), cells | {team: int(here.cells[i])}))
                more.append(hashes | {m: named[m][i] for m in named})
        visited.append(team)
        paths, told = longer, more
        if not paths:
            return set()
    mask = (1 << code.code.chunk_bits) - 1
    symbols = np.array([[cells[m] & mask for m in visited] for _, cells in paths])
    messages = code.reed_solomon.interpolate(visited, symbols)
    good = code.fits(messages)
    if code.code.symbol_pointers:
        for team in set(told[0]) - set(visited):
            other = code.symbol_hashes(code.reed_solomon.through(visited, symbols, (team,))[:, 0], team)
            good &= other == np.array([hashes[team] for hashes in told])
    return {tuple(row) for row in messages[good].tolist()}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_search_finds_what_a_plain_one_finds(name, seed, monkeypatch):
    """Few cells a team, so that nothing is cut: the same messages, the item among them."""
    monkeypatch.setattr(beam, "MOST_CELLS", 60)
    parameters, bits, starts = CASES[name]
    code, lists, item = lists_of(parameters, bits, seed)
    for start in starts:
        rows = search(code, lists, start, 1 << 13)
        found = {tuple(row) for row in rows.tolist()}
        assert found == plain(code, lists, start, 1 << 13)
        assert len(found) == len(rows)
        assert tuple(item[0].tolist()) in found


@pytest.mark.parametrize("name", CASES)
def test_what_a_cell_names_is_read_from_where_it_was_put(name):
    parameters, bits, _ = CASES[name]
    code, lists, _ = lists_of(parameters, bits, 3)
    for team, here in enumerate(lists):
        named = hashes_in(code, team, here.cells)
        assert set(named) == set(here.fields)
        for other in range(code.teams):
            assert (here.hash_of(here.named, other) == named.get(other, 0)).all()


def test_a_path_learns_what_the_cell_names_and_forgets_nothing():
    code, lists, _ = lists_of(MANY, 30, 4)
    here = lists[2]
    before = tuple(word[:5] for word in lists[9].named)
    after = here.learn(before, np.array([4, 0, 0]), np.array([7, 7, 1]))
    for team in range(code.teams):
        own = here.hash_of(here.named, team)[[7, 7, 1]]
        assert (here.hash_of(after, team) == here.hash_of(before, team)[[4, 0, 0]] | own).all()


def test_messages_come_best_first_by_the_cells_that_their_paths_have(monkeypatch):
    """By what the visited teams add up to: with all of the item's cells at the top it comes first."""
    monkeypatch.setattr(beam, "MOST_CELLS", 400)
    _, lists, item = lists_of(SIX, 32, 6)
    code = bulk_code(collection("expander-sketch", SIX, domain=Integers(0, (1 << 32) - 1)).randomizer)
    for start in range(code.teams):
        rows = search(code, lists, start, 64)
        assert (rows[0] == item[0]).all()


def test_more_threads_find_the_same_messages_in_the_same_order():
    code, lists, item = lists_of(SIX, 32, 7)
    with ThreadPoolExecutor(2) as threads:
        for origins in (None, code.cells(item)):
            alone = list(propose(code, lists, 256, None, None, origins))
            together = list(propose(code, lists, 256, None, threads, origins))
            assert len(alone) == len(together) == code.teams * (1 if origins is None else 2)
            assert all((one == other).all() for one, other in zip(alone, together, strict=True))

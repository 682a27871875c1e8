"""The engine: the same counts for any number of processes and any division, from the bytes that clients send."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_server.oracles import oracle_for
from simulator import crowd, engine, machine
from simulator.engine import Job, blocks_of, count, draw_block, payloads, run_seed
from simulator.experiments.frequencies import build, prepare
from simulator.experiments.options import SimulationOptions

USERS = 5 * crowd.BLOCK // 2
SETTINGS = {
    "listed": SimulationOptions(USERS, domain="4096", population="planted:0.05+mixture:0.9*zipf:1.1+0.1*none"),
    "hashed": SimulationOptions(USERS, domain="4294967296", population="mixture:0.8*zipf:1.1:1000+0.2*singletons"),
}


def job_of(name):
    wanted = SETTINGS[name]
    setting = prepare(wanted)
    return Job(build(setting, "1"), setting.population, setting.naming, wanted.users, 5)


@pytest.mark.parametrize("name", SETTINGS)
def test_results_do_not_depend_on_processes_or_shares(name, monkeypatch):
    job = job_of(name)
    one = count(job)
    several = count(job, processes=3)
    monkeypatch.setattr(engine, "_LONGEST", 1)
    split = count(job)
    for other in (several, split):
        assert other.oracle.to_bytes() == one.oracle.to_bytes()
        np.testing.assert_array_equal(other.held, one.held)
        assert other.singles == one.singles
    assert one.oracle.reports == one.held.sum() + one.singles == USERS


def test_another_seed_gives_other_reports():
    job = job_of("listed")
    assert count(Job(job.collection, job.population, job.naming, 1000, 1)).oracle.to_bytes() != (
        count(Job(job.collection, job.population, job.naming, 1000, 2)).oracle.to_bytes()
    )
    assert len({run_seed(1, run) for run in range(1000)}) == 1000


def test_the_crowd_sends_what_clients_send():
    """The first users' reports are those of the client's own code on the same words."""
    job = job_of("hashed")
    ranks = draw_block(job, 1)[:200]
    payload = next(payloads(job, 1, draw_block(job, 1)))
    randomizer = job.collection.randomizer
    words = crowd.draw_words(job.seed, 1, crowd.BLOCK, randomizer.words)
    indexes = job.naming.indexes(ranks)
    expected = b"".join(
        job.collection.randomize(job.collection.domain.item(int(index)), [int(w) for w in line])
        for index, line in zip(indexes, words[:200], strict=True)
    )
    assert payload[: len(expected)] == expected


def test_progress_adds_up_to_all_users():
    told = []
    count(job_of("listed"), progress=told.append)
    assert sum(told) == USERS


def test_the_truth_is_the_truth():
    """The held counts are recomputed from the blocks."""
    job = job_of("listed")
    ranks = np.concatenate([draw_block(job, block) for block in blocks_of(USERS)])
    np.testing.assert_array_equal(
        count(job).held, np.bincount(ranks.astype(int), minlength=job.population.distinct + 1)
    )


def test_more_memory_than_there_is_is_refused_before_anything_starts(monkeypatch):
    monkeypatch.setattr(machine, "available_memory", lambda: 50 << 20)
    with pytest.raises(InvalidSpec, match="GB are free"):
        count(job_of("listed"))


def test_peak_memory_and_available_memory_are_plausible():
    assert 10 < machine.peak_rss_mb() < 100_000
    assert machine.available_memory() > 1 << 20


def test_nobody_can_be_counted():
    job = job_of("listed")
    empty = count(Job(job.collection, job.population, job.naming, 0, 1))
    assert empty.oracle.to_bytes() == oracle_for(job.collection).to_bytes()

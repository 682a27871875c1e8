"""From users to counts: users are drawn, randomized, packed and counted in blocks, on one process or on several.

A block has 65,536 users. Their items, and the random words of their reports, come from generators that are seeded by
(seed, block). Counts are integers and are added up. The result is therefore the same, bit for bit, for every number of
processes and every division of the blocks among them. The memory that is needed does not depend on the number of users.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import active_children, get_context
from multiprocessing.context import ForkServerContext

import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection
from ldp_client.mechanisms.subset_selection import SubsetSelection
from ldp_client.protocol.packing import MAX_PAYLOAD
from ldp_server.arrays.packing import pack
from ldp_server.oracles import Oracle, oracle_for, restore
from simulator import crowd
from simulator.machine import Stopwatch, check_memory
from simulator.population.kinds import SINGLE, Population, block_coins
from simulator.population.naming import NamedRanks

__all__ = ["Counted", "Job", "blocks_of", "count", "draw_block", "fork_context", "payloads", "pool", "run_seed"]

U64 = npt.NDArray[np.uint64]
Progress = Callable[[int], None]

_SHARES = 3
"""How many shares of the blocks each process gets. Several shares even out the speed of processes; each one costs a
transfer of counts."""
_COPYING = 5
"""Part of the seed of whose reports are copied."""
_LONGEST = 256
"""Blocks of a share, at most."""


@dataclass(frozen=True)
class Job:
    """The inputs of a run: a collection, and users with their items."""

    collection: Collection
    population: Population
    naming: NamedRanks
    users: int
    seed: int
    copies: float = 0.0
    """The part of all reports that are copies of others, each of another one of its block."""

    def __reduce__(self) -> tuple[Callable[..., Job], tuple[object, ...]]:
        """Pickle the collection as its spec, for other processes."""
        return _job, (self.collection.spec_bytes, self.population, self.naming, self.users, self.seed, self.copies)


def _job(spec_bytes: bytes, population: Population, naming: NamedRanks, users: int, seed: int, copies: float) -> Job:
    return Job(Collection.from_bytes(spec_bytes), population, naming, users, seed, copies)


@dataclass
class Counted:
    """The counts of all reports, and the truth, which only a simulator knows."""

    oracle: Oracle
    held: npt.NDArray[np.int64]
    """How many users hold each rank, from 0 (`none`) to the population's last one; a copy counts as one more."""
    singles: int
    """How many users hold an item that nobody else holds."""
    seconds: dict[str, float]
    """CPU seconds by stage: population, randomize, aggregate."""


def run_seed(seed: int, run: int) -> int:
    """Return the seed of one of several runs."""
    return int(np.random.SeedSequence([seed, run, 3]).generate_state(1)[0])


def blocks_of(users: int) -> range:
    """Return the numbers of the blocks of so many users."""
    return range(-(-users // crowd.BLOCK))


def draw_block(job: Job, block: int) -> U64:
    """Draw the ranks of one block's users."""
    first = block * crowd.BLOCK
    ranks = job.population.draw(block_coins(job.seed, block), first, min(crowd.BLOCK, job.users - first))
    return _copied(job, block, ranks)


def _copied(job: Job, block: int, values: U64) -> U64:
    """Put the values of some users in the place of those of others: a part `copies` of the block."""
    again = round(job.copies * len(values))
    if not again:
        return values
    order = np.random.default_rng(np.random.SeedSequence([job.seed, block, _COPYING])).permutation(len(values))
    values[order[len(order) - again :]] = values[order[:again]]
    return values


def payloads(job: Job, block: int, ranks: U64) -> Iterator[bytes]:
    """Randomize and pack one block, in batches of the largest size."""
    randomizer = job.collection.randomizer
    step = MAX_PAYLOAD // randomizer.report_bytes
    for made in crowd.simulate(randomizer, job.naming.indexes(ranks), job.seed, block):
        reports = _copied(job, block, made)
        for start in range(0, len(reports), step):
            yield pack(reports[start : start + step], randomizer.report_bytes)


def _count_blocks(job: Job, blocks: range) -> Counted:
    """Draw, randomize and count some blocks in this process."""
    watch, oracle = Stopwatch(), oracle_for(job.collection)
    held, singles = np.zeros(job.population.distinct + 1, np.int64), 0
    for block in blocks:
        with watch.stage("population"):
            ranks = draw_block(job, block)
            common = ranks[ranks < np.uint64(SINGLE)].astype(np.intp)
            held += np.bincount(common, minlength=len(held))
            singles += len(ranks) - len(common)
        with watch.stage("randomize"):
            batches = list(payloads(job, block, ranks))
        with watch.stage("aggregate"):
            for batch in batches:
                oracle.accumulate(batch)
    return Counted(oracle, held, singles, watch.seconds)


@dataclass(frozen=True)
class _Sent:
    """`Counted` on its way between processes, with the oracle as bytes."""

    state: bytes
    held: npt.NDArray[np.int64]
    singles: int
    seconds: dict[str, float]


def _work(job: Job, blocks: range) -> _Sent:
    counted = _count_blocks(job, blocks)
    return _Sent(counted.oracle.to_bytes(), counted.held, counted.singles, counted.seconds)


def _quiet() -> None:
    """Ignore Ctrl-C in a worker; the parent ends the pool."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def fork_context(module: str = __name__) -> ForkServerContext:
    """Return a way to start processes that have imported a module already: it is imported once, not in each of them.

    The first module that is asked for counts, and the program's main module, which is what Python imports by itself.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(["__main__", module])
    return context


@contextmanager
def pool(processes: int) -> Iterator[Executor]:
    """Give worker processes that end with the block, also if it is interrupted."""
    executor = ProcessPoolExecutor(processes, mp_context=fork_context(), initializer=_quiet)
    try:
        yield executor
    except BaseException:
        for child in active_children():
            child.terminate()
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def count(job: Job, *, processes: int = 1, progress: Progress | None = None) -> Counted:
    """Simulate all users; `progress` is called with the number of users that are done since the last call."""
    blocks = blocks_of(job.users)
    check_memory(_size(job), max(1, processes))
    step = max(1, min(_LONGEST, -(-len(blocks) // (max(1, processes) * _SHARES))))
    shares = [blocks[i : i + step] for i in range(0, len(blocks), step)]
    if processes <= 1 or len(shares) == 1:
        return _here(job, shares, progress)
    with pool(min(processes, len(shares))) as executor:
        return _gather(job, shares, executor, processes, progress)


def _size(job: Job) -> int:
    """About how many bytes the counts and one decoding take."""
    randomizer = job.collection.randomizer
    cells = getattr(getattr(randomizer, "inner", randomizer), "size", randomizer.size)
    # Sets are counted by the categories that they hold, all other reports by their number.
    counted = randomizer.size if isinstance(randomizer, SubsetSelection) else randomizer.bound
    return 8 * counted + 32 * min(cells, counted) + 16 * job.population.distinct


def _here(job: Job, shares: list[range], progress: Progress | None) -> Counted:
    total: Counted | None = None
    for share in shares:
        total = _add(total, _count_blocks(job, share))
        _tell(progress, job, share)
    return total or _count_blocks(job, range(0))


def _add(total: Counted | None, part: Counted) -> Counted:
    if total is None:
        return part
    total.oracle.merge(part.oracle)
    watch = Stopwatch()
    watch.merge(total.seconds)
    watch.merge(part.seconds)
    return replace(total, held=total.held + part.held, singles=total.singles + part.singles, seconds=watch.seconds)


def _tell(progress: Progress | None, job: Job, share: range) -> None:
    if progress is not None:
        progress(min(job.users, share.stop * crowd.BLOCK) - share.start * crowd.BLOCK)


def _gather(job: Job, shares: list[range], executor: Executor, processes: int, progress: Progress | None) -> Counted:
    """Keep all workers busy, and add up their counts in the order in which they arrive."""
    waiting, running, total = iter(shares), dict[Future[_Sent], range](), None
    for share in waiting:
        running[executor.submit(_work, job, share)] = share
        if len(running) < 2 * processes:
            continue
        total = _collect(job, running, total, progress)
    while running:
        total = _collect(job, running, total, progress)
    return total or _count_blocks(job, range(0))


def _collect(
    job: Job, running: dict[Future[_Sent], range], total: Counted | None, progress: Progress | None
) -> Counted | None:
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in done:
        sent, share = future.result(), running.pop(future)
        oracle = restore(job.collection, sent.state)
        total = _add(total, Counted(oracle, sent.held, sent.singles, sent.seconds))
        _tell(progress, job, share)
    return total

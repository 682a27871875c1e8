"""One heavy-hitter experiment: a population, its reports through the real packing, the list, and the truth."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from multiprocessing import get_context
from time import process_time, thread_time
from typing import TypeVar

import numpy as np

from benchmarks.row import cpu_seconds
from ldp_client.coins import draw_words
from ldp_client.collection import Collection
from ldp_client.privacy.yardsticks import d_opt
from ldp_client.protocol.domain import Domain, Integers, Item, Strings
from ldp_server.arrays.hashing import Indexes
from ldp_server.arrays.items import from_ints, to_ints
from ldp_server.arrays.packing import pack
from ldp_server.heavy_hitters import Copies, DecodeLimits, HeavyHitters, decode
from ldp_server.heavy_hitters.planner import create, plan
from ldp_server.oracles import Oracle, oracle_for
from ldp_server.oracles.base import binomial_variance
from simulator import crowd

__all__ = [
    "KINDS",
    "Trial",
    "TrialSetting",
    "client_speed",
    "collect",
    "judged",
    "population",
    "run_trial",
    "run_trials",
    "side_by_side",
    "timed",
    "with_copies",
    "words",
]

Given = TypeVar("Given")
Result = TypeVar("Result")

KINDS = ("random", "shared-prefix", "short", "utf-8")
PAYLOAD = 240_000
BODY = 10_000
BETA = 0.1
"""Half of it, 0.05, is for items from noise: the setting of the tables in docs/heavy-hitters.md."""


@dataclass(frozen=True)
class TrialSetting:
    """The users of a trial, and what they are asked."""

    domain: Domain
    users: int
    epsilon: str
    kind: str = "random"
    mechanism: str = "auto"
    planted: tuple[float, ...] = ()
    each: int = 2
    singletons: float = 0.2
    copies: float = 0.0
    """The part of all reports that are copies of others."""

    def plant(self, multiples: tuple[float, ...], each: int) -> TrialSetting:
        """Plant `each` items at every multiple of D_opt, as many as half of the users can hold."""
        unit = self.d_opt / self.users
        while each > 1 and sum(multiples) * each * unit > 0.5:
            each -= 1
        return replace(self, planted=tuple(m for m in multiples for _ in range(each)))

    def with_mechanism(self, name: str) -> TrialSetting:
        """Return the same users with another mechanism."""
        return replace(self, mechanism=name)

    @property
    def d_opt(self) -> float:
        """The error of an optimal oracle over the whole domain."""
        return d_opt(self.users, float(self.epsilon), self.domain.size)

    @property
    def slope(self) -> float:
        """z1: how many standard errors one multiple of D_opt is."""
        return math.sqrt(2 * (math.log(self.domain.size) + math.log(2 / 0.05)))

    def collection(self, seed: int) -> Collection:
        """A question of its own for each trial, so that hashes differ too."""
        chosen = plan(self.users, self.domain, self.epsilon, mechanism=self.mechanism)
        return create(f"trial {seed}", self.domain, self.epsilon, chosen, opens=0, closes=1)


@dataclass
class Trial:
    """The result of one trial."""

    mechanism: str
    planted: list[tuple[float, bool]]
    false: int
    errors: list[float]
    covered: list[bool]
    missed: list[float]
    """Shares of the items that were not listed, the most frequent first."""
    seconds: dict[str, float]
    warned: bool = False
    """Whether the answer warned about its reports."""


def words(domain: Domain, kind: str, count: int, rng: np.random.Generator) -> list[Item]:
    """Return distinct items of a kind."""
    if isinstance(domain, Integers):
        return [int(x) for x in rng.integers(0, domain.count, count, np.uint64)]
    if not isinstance(domain, Strings):
        raise TypeError("trials hold integers or strings")
    size = domain.max_bytes
    if kind == "random":
        data = rng.bytes(size * count)
        return [data[size * i : size * (i + 1)] for i in range(count)]
    numbers = [int(x) for x in rng.choice(26**4, count, replace=False)] if count <= 26**4 else list(range(count))
    if kind == "shared-prefix":
        return [f"id={n:05x}"[:size] for n in numbers]
    if kind == "short":
        return [_letters(n, "abcdefghijklmnopqrstuvwxyz") for n in numbers]
    return [_letters(n, "абвгдежзиклмнопрстуфхцчшщъ") for n in numbers]


def _letters(number: int, alphabet: str) -> str:
    text = ""
    while True:
        number, digit = divmod(number, len(alphabet))
        text += alphabet[digit]
        if number == 0 or len(text) == 4:
            return text


def population(setting: TrialSetting, seed: int) -> tuple[Indexes, dict[int, int], list[int]]:
    """Return every user's index, the count of every index held twice or more, and the planted indexes."""
    rng = np.random.default_rng(seed)
    domain, bits = setting.domain, setting.domain.bits
    planted = [round(multiple * setting.d_opt) for multiple in setting.planted]
    rest = setting.users - sum(planted)
    singles = int(rest * setting.singletons)
    room = 26**4 - len(planted) - BODY
    alone = min(singles, room) if setting.kind != "random" else singles
    items = words(domain, setting.kind, len(planted) + BODY + alone, rng)
    weights = np.arange(1, BODY + 1) ** -1.1
    body = rng.multinomial(rest - alone, weights / weights.sum())
    counts = np.concatenate([planted, body, np.ones(alone, np.int64)]).astype(np.int64)
    numbers = [domain.index(item) for item in items]
    distinct = from_ints(numbers, bits)
    order = rng.permutation(np.repeat(np.arange(len(distinct)), counts))
    truth: dict[int, int] = {}
    for number, count in zip(numbers, counts, strict=True):
        if count:
            truth[number] = truth.get(number, 0) + int(count)
    return distinct[order], truth, numbers[: len(planted)]


def with_copies(copies: float, indexes: Indexes) -> Indexes:
    """Return the users, in random order, with those whose report is sent twice in the place of the last ones."""
    again = round(copies * len(indexes))
    return np.concatenate([indexes[: len(indexes) - again], indexes[:again]])


def collect(
    collection: Collection, indexes: Indexes, seed: int, copies: float = 0.0
) -> tuple[Oracle, dict[str, float]]:
    """Randomize, pack and count as production does; return the oracle and the CPU seconds.

    The last part of the users, `copies` of all, send copies of the first users' reports instead of their own.
    """
    start, again = process_time(), round(copies * len(indexes))
    reports = np.concatenate(list(crowd.simulate(collection.randomizer, indexes, seed)))
    reports = np.concatenate([reports[: len(reports) - again], reports[:again]])
    randomized = process_time()
    width = collection.randomizer.report_bytes
    payload = pack(reports, width)
    packed = process_time()
    oracle = oracle_for(collection)
    step = PAYLOAD // width * width
    for first in range(0, len(payload), step):
        oracle.accumulate(payload[first : first + step])
    return oracle, {"randomize": randomized - start, "accumulate": process_time() - packed}


def run_trial(setting: TrialSetting, seed: int, decoder: str | None = None, counting: Copies = Copies.WEIGHED) -> Trial:
    """Run one trial."""
    collection = setting.collection(seed)
    indexes, truth, planted = population(setting, seed)
    oracle, seconds = collect(collection, indexes, seed, setting.copies)
    if setting.copies:  # the truth about the reports: a copy counts as one more holder
        truth = dict(Counter(to_ints(with_copies(setting.copies, indexes))))
    start = process_time()
    listed = decode(collection, oracle, decoder=decoder, beta=BETA, limits=DecodeLimits(copies=counting))
    seconds["decode"] = process_time() - start
    return judged(setting, collection, listed, truth, planted, seconds)


def judged(
    setting: TrialSetting,
    collection: Collection,
    listed: HeavyHitters,
    truth: Mapping[int, int],
    planted: Iterable[int],
    seconds: dict[str, float],
) -> Trial:
    """Compare a list with the truth: the holders of every index that is held twice or more."""
    found = {collection.domain.index(h.item): h for h in listed.items}
    p, s = (float(x) for x in collection.randomizer.inner.support)  # type: ignore[attr-defined] # every sketch has one
    held = [(truth[index], h) for index, h in found.items() if truth.get(index, 0) > 0]
    missed = sorted((count for index, count in truth.items() if index not in found), reverse=True)[:1]
    return Trial(
        mechanism=collection.randomizer.name,
        planted=[(m, index in found) for m, index in zip(setting.planted, planted, strict=True)],
        false=len(listed.items) - len(held),
        errors=[
            (h.estimate - count) / float(np.sqrt(binomial_variance(count, setting.users, p, s))) for count, h in held
        ],
        covered=[h.low <= truth.get(index, 0) <= h.high for index, h in found.items()],
        warned=bool(listed.independence.warnings),
        missed=[count / setting.users for count in missed],
        seconds=seconds,
    )


@cache
def _workers() -> ProcessPoolExecutor:
    """Return a process for each core. They ignore interrupts and end with the process that started them."""
    context = get_context("spawn")
    return ProcessPoolExecutor(os.cpu_count(), mp_context=context, initializer=_begin, initargs=(os.getpid(),))


def _begin(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def side_by_side(name: str, work: Callable[[Given], Result], given: Iterable[Given]) -> list[Result]:
    """Call a function on every element, on all cores; on a terminal, show the progress."""
    todo, done = list(given), []
    for result in _workers().map(work, todo):
        done.append(result)
        if sys.stderr.isatty():
            end = "\n" if len(done) == len(todo) else ""
            print(f"\r{name}: {len(done)}/{len(todo)}", end=end, file=sys.stderr, flush=True)
    return done


def run_trials(name: str, setting: TrialSetting, seeds: Iterable[int]) -> list[Trial]:
    """Run one trial for each seed."""
    return side_by_side(name, partial(run_trial, setting), seeds)


def client_speed(collection: Collection) -> float:
    """Reports a second of plain Python, the operating system's coins included."""
    numbers = [int(x) for x in np.random.default_rng(1).integers(0, 1 << 63, 4000)]
    text = isinstance(collection.domain, Strings)
    items: list[Item] = [f"{x:x}".zfill(32)[: collection.domain.max_bytes] for x in numbers] if text else list(numbers)  # type: ignore[attr-defined] # a Strings
    words = collection.randomizer.words

    def work() -> None:
        for item in items:
            collection.randomize(item, draw_words(words))

    return len(items) / cpu_seconds(work, 3)


def timed(collection: Collection, oracle: Oracle) -> float:
    """CPU seconds of one decoding."""
    start = thread_time()
    decode(collection, oracle)
    return thread_time() - start

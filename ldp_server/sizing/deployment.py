"""The arithmetic of a deployment. Each part says how it was worked out, so that a reader can do it again.

A single report comes in a call of its own. A gateway's batches come on a stream, and cost what a batch of 1,000 costs
for every thousand reports begun. A collector commits at most once in `linger_seconds`. The index of ids is touched at
random: of its L pages, b ids between two checkpoints touch about L (1 - exp(-b / L)), and each of these is once written
whole into the write-ahead log.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from ldp_client.errors import InvalidSpec
from ldp_server.sizing.figures import Figures
from ldp_server.store.commit import LINGER

__all__ = ["Load", "Prices", "SizedDeployment", "sized"]

DAY = 86_400
PAGE = 8192
GB = 1e9
COLLECTOR_MEMORY = 1.0
"""GB: the bound of docs/operating.md with two ports, and room."""
WORKER_MEMORY = 10.0
"""GB of an answerer: two processes of limits.worker_memory_mb, and room."""
ANSWERERS = 2


@dataclass(frozen=True)
class Load:
    """What comes, and how the machines are to be used."""

    users_a_day: float
    reports_of_a_user: float = 1
    reports_of_a_batch: float = 1
    report_bytes: float = 4
    own_connections: bool = False
    """Whether collectors end TLS for each report, and no proxy does."""
    peak: float = 3
    """The rate of the busiest minutes over the mean."""
    busy: float = 0.6
    """The share of a core that is used at the peak."""
    days_kept: float = 1
    """For how long ids and reports stay before they are folded."""
    checkpoint_minutes: float = 30
    database_cores: float = 16
    """Of the largest PostgreSQL that can be had."""
    decodes_a_day: float = 24
    linger_seconds: float = LINGER
    """limits.linger_seconds of the collectors."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = float(getattr(self, one.name))
            if one.name not in {"own_connections", "decodes_a_day"} and not 0 < value < math.inf:
                raise InvalidSpec(f"{one.name.replace('_', ' ')} must be above 0")
        if self.busy > 1 or self.peak < 1 or self.reports_of_a_batch < 1 or not 0 <= self.decodes_a_day < math.inf:
            raise InvalidSpec("busy is at most 1; peak and reports of a batch are at least 1; decodes are not negative")


@dataclass(frozen=True)
class Prices:
    """What a core, a GB of memory and a GB of disk cost in a month, in any currency."""

    core: float
    memory: float
    disk: float


@dataclass(frozen=True)
class SizedDeployment:
    """The numbers of a deployment. Rates are those of the peak, and days are whole days."""

    reports_a_day: float
    batches_a_second: float
    collectors: int
    databases: int
    database_cores: float
    """Of all databases together."""
    database_memory_gb: float
    database_disk_gb: float
    """With the write-ahead log, without standbys."""
    ids_gb: float
    log_gb_a_day: float
    log_mb_a_second: float
    upkeep_cores: float
    counting_seconds_a_day: float
    decoding_seconds_a_day: float
    answerers: int
    cores: int
    memory_gb: float
    disk_gb: float
    cost: float | None
    warnings: tuple[str, ...]


def sized(load: Load, figures: Figures, prices: Prices | None = None, *, standbys: int = 1) -> SizedDeployment:
    """Work out a deployment. Standbys are as large as the database."""
    reports = load.users_a_day * load.reports_of_a_user
    batches = reports / load.reports_of_a_batch
    peak = load.peak * batches / DAY
    collectors = max(2, math.ceil(peak * _collector_us(load, figures) * 1e-6 / load.busy))
    commits = min(peak, collectors / load.linger_seconds)
    database = _database_us(load, figures, commits, peak) * 1e-6 / load.busy
    databases = max(1, math.ceil(database / load.database_cores))
    log_a_day, log_a_second = _log(load, figures, batches, commits / peak)
    ids = load.days_kept * batches * figures.batch_disk
    disk = ids + load.days_kept * reports * load.report_bytes + 2 * load.checkpoint_minutes * 60 * log_a_second
    memory = databases * 4 + load.days_kept * batches * figures.index_disk / GB
    upkeep = peak * figures.upkeep_us * 1e-6
    cores = collectors + (1 + standbys) * max(2, math.ceil(database)) + ANSWERERS * 2 + 2
    all_memory = collectors * COLLECTOR_MEMORY + (1 + standbys) * memory + (ANSWERERS + 1) * WORKER_MEMORY
    all_disk = (1 + standbys) * disk / GB
    return SizedDeployment(
        reports_a_day=reports,
        batches_a_second=peak,
        collectors=collectors,
        databases=databases,
        database_cores=database,
        database_memory_gb=memory,
        database_disk_gb=disk / GB,
        ids_gb=ids / GB,
        log_gb_a_day=log_a_day / GB,
        log_mb_a_second=log_a_second / 1e6,
        upkeep_cores=upkeep,
        counting_seconds_a_day=reports / figures.counted,
        decoding_seconds_a_day=load.decodes_a_day * figures.decode_seconds,
        answerers=ANSWERERS,
        cores=cores,
        memory_gb=all_memory,
        disk_gb=all_disk,
        cost=None if prices is None else cores * prices.core + all_memory * prices.memory + all_disk * prices.disk,
        warnings=tuple(_warnings(load, databases, upkeep, memory)),
    )


def _collector_us(load: Load, figures: Figures) -> float:
    if load.reports_of_a_batch > 1:
        return figures.thousand_us * math.ceil(load.reports_of_a_batch / 1000)
    return figures.connection_us if load.own_connections else figures.call_us


def _database_us(load: Load, figures: Figures, commits: float, batches: float) -> float:
    """Microseconds of PostgreSQL in a second of the peak."""
    part = load.reports_of_a_batch * load.report_bytes / 4000
    batch = figures.batch_us + max(0.0, figures.large_batch_us - figures.batch_us) * part
    return commits * figures.commit_us + batches * (batch + figures.upkeep_database_us * max(1.0, part))


def _log(load: Load, figures: Figures, batches: float, commits_of_a_batch: float) -> tuple[float, float]:
    """Bytes of the write-ahead log of a day, and of a second of the peak."""
    length = load.reports_of_a_batch * load.report_bytes
    one = figures.commit_log * commits_of_a_batch + figures.batch_log + figures.upkeep_log
    one += length * (1 + figures.large_batch_log / 4000)  # the reports come once in segments, and once in blocks
    pages = load.days_kept * batches * figures.index_disk / PAGE
    interval = load.checkpoint_minutes * 60

    def images(rate: float) -> float:
        """Bytes of page images of a second, at so many ids a second."""
        return PAGE * pages * -math.expm1(-rate * interval / max(pages, 1)) / interval

    peak = load.peak * batches / DAY
    return batches * one + DAY * images(batches / DAY), peak * one + images(peak)


def _warnings(load: Load, databases: int, upkeep: float, memory: float) -> list[str]:
    found = []
    if databases > 1:
        found.append(
            f"{databases} databases of {load.database_cores:g} cores: send in larger batches, or name so many in store"
        )
    if upkeep > 0.8:
        found.append("one upkeep works at a time, and it would need more than a core: send in larger batches")
    if memory > 256:
        found.append("the index of ids is larger than 256 GB: fold sooner (fewer days kept)")
    return found

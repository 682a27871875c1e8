"""`ldp-simulate poison`: what a fraction of malicious users can do to an item's estimate, mechanism by mechanism.

The protocol protects users from the server, not the server from users. One malicious report moves the estimate of a
chosen item by (1 - s)/(p - s) users up, or s/(p - s) down, p and s being the probabilities that a holder's and another
user's report support it: at eps = 1 by about two to three users for a large domain, at eps = 0.1 by about twenty. The
stronger the privacy, the louder a liar. Admission (one report a person) is what bounds the fraction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_server.answers.choose import alternatives
from ldp_server.arrays.packing import pack
from ldp_server.heavy_hitters.planner import plan
from simulator import crowd
from simulator.crowd.loaded import ATTACKS, everyone, gain, loaded_reports
from simulator.engine import Job, count, run_seed
from simulator.experiments.frequencies import FrequencySetting, SimulationOptions, build, prepare
from simulator.shapes import PoisonRow

__all__ = ["DEFAULT_FRACTIONS", "DEFAULT_MECHANISMS", "SKETCHES", "run"]

DEFAULT_FRACTIONS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
SKETCHES = ("expander-sketch", "prefix-tree", "tree-sketch")
DEFAULT_MECHANISMS = ("randomized-response", "linear-hash", "hashtogram")
_ATTACKERS_FROM = 1 << 40
"""Blocks from here on are attackers': their coins are never those of honest users."""


@dataclass(frozen=True)
class _Attack:
    """One point."""

    setting: FrequencySetting
    wanted: SimulationOptions
    attack: str
    fraction: float
    target: int


def run(
    wanted: SimulationOptions,
    *,
    mechanisms: Sequence[str] = (),
    attacks: Sequence[str] = ATTACKS,
    fractions: Sequence[float] = DEFAULT_FRACTIONS,
    target: int = 0,
    progress: Callable[[int], None] | None = None,
) -> list[PoisonRow]:
    """Every mechanism under every attack by every fraction; `target` is the item's rank (0: the least popular)."""
    if not all(0 < f < 1 for f in fractions):
        raise InvalidSpec("a fraction of malicious users lies between 0 and 1")
    settings = [(name, _setting(wanted, name)) for name in mechanisms or _suiting(wanted)]
    rows = []
    for _, setting in settings:
        rank = target or setting.population.distinct
        if not 1 <= rank <= setting.population.distinct:
            raise InvalidSpec(f"the population has items of rank 1 to {setting.population.distinct}")
        for attack in attacks:
            for fraction in fractions:
                point = _Attack(setting, wanted, attack, fraction, rank)
                rows.append(_point(point))
                if progress is not None:
                    progress(1)
    return rows


def _suiting(wanted: SimulationOptions) -> list[str]:
    """The mechanisms that suit the domain."""
    size, found = prepare(replace(wanted, mechanism="auto")).naming.domain.size, dict[str, None]()
    for alternative in alternatives(wanted.users, size, wanted.epsilon, memory=wanted.memory):
        found[alternative.mechanism] = None
    return [name for name in DEFAULT_MECHANISMS if name in found]


def _setting(wanted: SimulationOptions, mechanism: str) -> FrequencySetting:
    """The population, and the mechanism with the chooser's or the planner's parameters."""
    if mechanism not in SKETCHES:
        return prepare(replace(wanted, mechanism=mechanism))
    setting = prepare(replace(wanted, mechanism="auto"))
    chosen = plan(wanted.users, setting.naming.domain, wanted.epsilon, mechanism=mechanism)
    return replace(setting, mechanism=mechanism, parameters=chosen.parameters)


def _point(point: _Attack) -> PoisonRow:
    """Honest users, then malicious ones; the damage is by how much these move the estimate."""
    wanted, setting = point.wanted, point.setting
    malicious = max(1, round(point.fraction * wanted.users))
    damages = []
    collection = build(setting, wanted.epsilon)
    randomizer = collection.randomizer
    for run_number in range(wanted.runs):
        collection = build(setting, wanted.epsilon, run_number)
        randomizer = collection.randomizer
        seed = run_seed(wanted.seed, run_number)
        job = Job(collection, setting.population, setting.naming, wanted.users - malicious, seed)
        counted = count(job, processes=wanted.processes)
        target = setting.naming.indexes(np.array([point.target], np.uint64))
        before = float(counted.oracle.estimate(target)[0])
        for start in range(0, malicious, crowd.BLOCK):
            number = min(crowd.BLOCK, malicious - start)
            block = _ATTACKERS_FROM + start // crowd.BLOCK
            reports = loaded_reports(randomizer, everyone(target, number), point.attack, seed, block)
            counted.oracle.accumulate(pack(reports, randomizer.report_bytes))
        damages.append(float(counted.oracle.estimate(target)[0]) - before)
    damage = float(np.mean(damages))
    expected = malicious * gain(randomizer, point.attack)
    error = float(np.sqrt(counted.oracle.variance(float(counted.held[point.target]))))
    return {
        "mechanism": randomizer.name,
        "parameters": dict(randomizer.parameters()),
        "users": wanted.users,
        "epsilon": collection.epsilon.text,
        "domain": setting.naming.domain.size,
        "attack": point.attack,
        "fraction": point.fraction,
        "malicious": malicious,
        "damage": damage,
        "damage_share": damage / wanted.users,
        "damage_per_malicious_user": damage / malicious,
        "expected": expected,
        "standard_error": error,
    }

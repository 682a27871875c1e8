"""`ldp-simulate poison`: what a fraction of malicious users can do to an item's estimate, mechanism by mechanism.

The protocol protects users from the server. It does not protect the server from users. Let p and s be the
probabilities that a report supports the item, if its user holds the item and if not. One malicious report moves the
item's estimate by (1 - s)/(p - s) users up, or by s/(p - s) users down. For a large domain that is two to three users
at eps = 1, and about twenty at eps = 0.1: the smaller epsilon is, the more a malicious report counts. Admission (one
report a person) limits the fraction of malicious users.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_server.answers.choose import DEFAULT_MEMORY, alternatives
from ldp_server.arrays.packing import pack
from ldp_server.heavy_hitters.planner import plan
from ldp_server.oracles import as_frequency
from simulator import crowd
from simulator.attacks.malicious import ATTACKS, everyone, gain, malicious_reports
from simulator.engine import Job, count, run_seed
from simulator.experiments.frequencies import FrequencySetting, build, prepare
from simulator.experiments.options import SimulationOptions
from simulator.shapes import PoisonRow

__all__ = ["DEFAULT_FRACTIONS", "DEFAULT_MECHANISMS", "SKETCHES", "Attacks", "attacked", "run"]

DEFAULT_FRACTIONS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
SKETCHES = ("expander-sketch", "prefix-tree", "tree-sketch")
DEFAULT_MECHANISMS = ("randomized-response", "subset-selection", "linear-hash", "hashtogram")
_ATTACKERS_FROM = 1 << 40
"""Blocks of coins from here on belong to malicious users."""


@dataclass(frozen=True)
class Attacks:
    """The attacks to simulate: every combination of mechanism, kind of attack and fraction of malicious users."""

    mechanisms: Sequence[str] = ()
    """Empty: all of DEFAULT_MECHANISMS that suit the domain."""
    kinds: Sequence[str] = ATTACKS
    fractions: Sequence[float] = DEFAULT_FRACTIONS
    target: int = 0
    """Rank of the attacked item; 0 is the least popular one."""


@dataclass(frozen=True)
class _Point:
    """An attack by one fraction of the users on one mechanism."""

    setting: FrequencySetting
    options: SimulationOptions
    attack: str
    fraction: float
    target: int


def run(
    options: SimulationOptions, attacks: Attacks | None = None, progress: Callable[[int], None] | None = None
) -> list[PoisonRow]:
    """Simulate all attacks."""
    attacks = attacks or Attacks()
    if not all(0 < f < 1 for f in attacks.fractions):
        raise InvalidSpec("a fraction of malicious users lies between 0 and 1")
    rows = []
    for setting in [_setting(options, name) for name in attacked(options, attacks)]:
        rank = attacks.target or setting.population.distinct
        if not 1 <= rank <= setting.population.distinct:
            raise InvalidSpec(f"the population has items of rank 1 to {setting.population.distinct}")
        for attack, fraction in itertools.product(attacks.kinds, attacks.fractions):
            rows.append(_row(_Point(setting, options, attack, fraction, rank)))
            if progress is not None:
                progress(1)
    return rows


def attacked(options: SimulationOptions, attacks: Attacks) -> list[str]:
    """Return the mechanisms that are attacked; by default those of DEFAULT_MECHANISMS that suit the domain."""
    if attacks.mechanisms:
        return list(attacks.mechanisms)
    size, found = prepare(replace(options, mechanism="auto")).naming.domain.size, dict[str, None]()
    for alternative in alternatives(options.users, size, options.epsilon, memory=options.memory or DEFAULT_MEMORY):
        found[alternative.mechanism] = None
    return [name for name in DEFAULT_MECHANISMS if name in found]


def _setting(options: SimulationOptions, mechanism: str) -> FrequencySetting:
    """The population, and the mechanism with the chooser's or the planner's parameters."""
    if mechanism not in SKETCHES:
        return prepare(replace(options, mechanism=mechanism))
    setting = prepare(replace(options, mechanism="auto"))
    chosen = plan(options.users, setting.naming.domain, options.epsilon, mechanism=mechanism)
    return replace(setting, mechanism=mechanism, parameters=chosen.parameters)


def _row(point: _Point) -> PoisonRow:
    options, setting = point.options, point.setting
    malicious = max(1, round(point.fraction * options.users))
    runs = [_damage(point, malicious, number) for number in range(options.runs)]
    damage = float(np.mean([moved for moved, _ in runs]))
    collection = build(setting, options.epsilon)
    randomizer = collection.randomizer
    return {
        "mechanism": randomizer.name,
        "parameters": dict(randomizer.parameters()),
        "users": options.users,
        "epsilon": collection.epsilon.text,
        "domain": setting.naming.domain.size,
        "attack": point.attack,
        "fraction": point.fraction,
        "malicious": malicious,
        "damage": damage,
        "damage_share": damage / options.users,
        "damage_per_malicious_user": damage / malicious,
        "expected": malicious * gain(randomizer, point.attack),
        "standard_error": runs[-1][1],
    }


def _damage(point: _Point, malicious: int, number: int) -> tuple[float, float]:
    """By how much the malicious users of one run move the estimate, and the standard error of the estimate."""
    options, setting = point.options, point.setting
    collection, seed = build(setting, options.epsilon, number), run_seed(options.seed, number)
    randomizer = collection.randomizer
    job = Job(collection, setting.population, setting.naming, options.users - malicious, seed)
    counted = count(job, processes=options.processes)
    target = setting.naming.indexes(np.array([point.target], np.uint64))
    oracle = as_frequency(counted.oracle)
    before = float(oracle.estimate(target)[0])
    for start in range(0, malicious, crowd.BLOCK):
        indexes = everyone(target, min(crowd.BLOCK, malicious - start))
        block = _ATTACKERS_FROM + start // crowd.BLOCK
        reports = malicious_reports(randomizer, indexes, point.attack, seed, block)
        oracle.accumulate(pack(reports, randomizer.report_bytes))
    error = float(np.sqrt(oracle.variance(float(counted.held[point.target]))))
    return float(oracle.estimate(target)[0]) - before, error

"""Run the attacks of all groups, or those that `--only` names: each on a fresh server, one after the other."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.attacks.attack import Attack
from benchmarks.row import Options, Row

__all__ = ["GROUPS", "attacks", "run"]

GROUPS = ("streams", "memory", "stuffing", "devices", "worker", "signed_list", "access")
"""The modules of this folder that have attacks."""


def attacks() -> list[Attack]:
    """Every attack, group by group."""
    return [attack for group in GROUPS for attack in importlib.import_module(f"benchmarks.attacks.{group}").ATTACKS]


def run(options: Options) -> Iterator[Row]:
    """Run the attacks; yield what each of them did, with its bound."""
    known = {attack.name: attack for attack in attacks()}
    unknown = set(options.only) - set(known)
    if unknown:
        raise SystemExit(f"no attack {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    for attack in known.values():
        if not options.only or attack.name in options.only:
            for line in attack.run():
                yield replace(line, name=f"{attack.name}: {line.name}")

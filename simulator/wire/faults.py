"""Faults as people write them: drop=0.01,duplicate=0.02,late=0.01,kill-server=30s,kill-relay=20s,reuse=0.01.

drop          the share of batches whose acknowledgement is lost; the same bytes are sent again later
duplicate     the share of batches that are sent twice: in a row, or with several collectors to two of them
late          the share of batches that are sent after the collection is closed, and must be refused
kill-server   the time after which the server is killed (SIGKILL) and started again
reuse         the share of batches whose tokens are shown again, with other bytes, and must not be counted again
forge         the share of batches that come again with tokens that nobody has signed, and must not be counted
kill-relay    the same as kill-server of the relay, if there is one
kill-issuer   the same of the issuer of tokens, if there is one

With several collectors on PostgreSQL. The first four happen again and again, so long (on average) after the last one:

kill-collector   one of the collectors is killed (SIGKILL) and started again
kill-upkeep      the same of the process that lays blocks and folds
crash-store      all processes of PostgreSQL are killed, and it recovers
cut              a connection of a sender or to the store stalls, is reset, or is cut in the middle of a message
skew             the clocks of the collectors are wrong, by at most so much
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec

__all__ = ["LARGEST_SKEW", "REPEATED", "FaultPlan", "Faults"]

_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|min|h)?")
_SHARES = ("drop", "duplicate", "late", "reuse", "forge")
REPEATED = ("kill-collector", "kill-upkeep", "crash-store", "cut")
"""Faults of several collectors that happen again and again."""
_TIMES = ("kill-server", "kill-relay", "kill-issuer", *REPEATED, "skew")
LARGEST_SKEW = 12 * 3600.0
SHORTEST = 0.2
"""Seconds between two faults of a kind."""
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, None: 1.0}


@dataclass(frozen=True)
class FaultPlan:
    """Says for each batch of a block which faults it has."""

    drop: npt.NDArray[np.bool_]
    duplicate: npt.NDArray[np.bool_]
    late: npt.NDArray[np.bool_]
    reuse: npt.NDArray[np.bool_]
    forge: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Faults:
    """The share of batches that have each fault, and when each process is killed."""

    drop: float = 0.0
    duplicate: float = 0.0
    late: float = 0.0
    kill_after: float | None = None
    kill_relay_after: float | None = None
    reuse: float = 0.0
    forge: float = 0.0
    kill_issuer_after: float | None = None
    repeated: Mapping[str, float] = field(default_factory=dict)
    """After how many seconds, on average, each of `REPEATED` happens again."""
    skew: float = 0.0

    @property
    def of_collectors(self) -> bool:
        """Whether there are faults that need several collectors."""
        return bool(self.repeated or self.skew)

    @property
    def of_tokens(self) -> bool:
        """Whether there are faults that need tokens."""
        return bool(self.reuse or self.forge) or self.kill_issuer_after is not None

    @classmethod
    def parse(cls, text: str) -> Faults:
        """Read the form above; an empty text is no fault."""
        values: dict[str, float] = {}
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            name, equals, value = part.partition("=")
            if not equals or name not in (*_SHARES, *_TIMES):
                shares, times = (", ".join(f"{one}=" for one in names) for names in (_SHARES, _TIMES))
                raise InvalidSpec(f"a fault is one of {shares} with a share or {times} with a time, not {part!r}")
            values[name] = _seconds(name, value) if name in _TIMES else _share(name, value)
        drop, duplicate, late, reuse, forge = (values.get(name, 0.0) for name in _SHARES)
        server, relay, issuer = (values.get(name) for name in _TIMES[:3])
        repeated, skew = {name: values[name] for name in REPEATED if name in values}, values.get("skew", 0.0)
        if skew > LARGEST_SKEW:
            raise InvalidSpec("skew is at most 12h: the collection is open for a day more")
        if any(every < SHORTEST for every in repeated.values()):
            raise InvalidSpec(f"{', '.join(repeated)}: give at least {SHORTEST:g}s, or nothing comes through")
        return cls(drop, duplicate, late, server, relay, reuse, forge, issuer, repeated, skew)

    def plan(self, seed: int, block: int, batches: int) -> FaultPlan:
        """Draw the faults of a block's batches: the same for every number of processes."""
        coins = np.random.Generator(np.random.SFC64(np.random.SeedSequence([seed, block, 4])))
        drawn = coins.random((5, batches))
        shares = (self.drop, self.duplicate, self.late, self.reuse, self.forge)
        return FaultPlan(*(row < share for row, share in zip(drawn, shares, strict=True)))


def _share(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InvalidSpec(f"{name} is a share of the batches between 0 and 1, such as {name}=0.01")
    return value


def _seconds(name: str, text: str) -> float:
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise InvalidSpec(f"{name} takes a time, such as {name}=30s or {name}=500ms")
    return float(match[1]) * _SECONDS[match[2]]

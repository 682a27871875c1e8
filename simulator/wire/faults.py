"""Faults as people write them: drop=0.01,duplicate=0.02,late=0.01,kill-server=30s,kill-relay=20s,reuse=0.01.

drop          the share of batches whose acknowledgement is lost; the same bytes are sent again later
duplicate     the share of batches that are sent twice in a row
late          the share of batches that are sent after the collection is closed, and must be refused
kill-server   the time after which the server is killed (SIGKILL) and started again
reuse         the share of batches whose tokens are shown again, with other bytes, and must not be counted again
forge         the share of batches that come again with tokens that nobody has signed, and must not be counted
kill-relay    the same as kill-server of the relay, if there is one
kill-issuer   the same of the issuer of tokens, if there is one
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec

__all__ = ["FaultPlan", "Faults"]

_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|min)?")
_SHARES = ("drop", "duplicate", "late", "reuse", "forge")
_TIMES = ("kill-server", "kill-relay", "kill-issuer")
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, None: 1.0}


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
        server, relay, issuer = (values.get(name) for name in _TIMES)
        return cls(drop, duplicate, late, server, relay, reuse, forge, issuer)

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

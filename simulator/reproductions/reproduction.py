"""What every reproduction returns: plots, and the table behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simulator.report.plots import Panel

__all__ = ["Progress", "Reproduction", "Rows"]

Progress = Callable[[int], None]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Reproduction:
    """The plots of a page in docs/, and their data."""

    panels: tuple[Panel, ...]
    rows: Rows

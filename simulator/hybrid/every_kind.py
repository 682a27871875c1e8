"""All kinds of questions, by the names that the command takes."""

from __future__ import annotations

from simulator.hybrid.choices import BelowNumbers, FrequentItems, MostFrequentItem
from simulator.hybrid.kinds import HybridKind, ListedItems, MeanNumber, MedianNumber, PairTables

__all__ = ["HYBRID_KINDS"]

HYBRID_KINDS: dict[str, type[HybridKind]] = {
    "items": ListedItems,
    "tables": PairTables,
    "average": MeanNumber,
    "median": MedianNumber,
    "thresholds": BelowNumbers,
    "most-frequent": MostFrequentItem,
    "top": FrequentItems,
}

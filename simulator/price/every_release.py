"""The question of every kind of release."""

from __future__ import annotations

from simulator.price import fields, items, labels, numbers, texts
from simulator.price.question import PricedQuestion

__all__ = ["QUESTIONS"]

QUESTIONS: tuple[type[PricedQuestion], ...] = (
    items.ItemShares,
    items.UnknownItems,
    items.TopItems,
    numbers.ListedThresholds,
    items.MostFrequent,
    items.ModalItem,
    numbers.Median,
    numbers.InsidePoint,
    numbers.AllThresholds,
    labels.LabelledItem,
    labels.LabelledNumber,
    labels.LabelledCut,
    labels.OnlyLabels,
    labels.LabelledBox,
    texts.CommonTexts,
    texts.TextDistribution,
    texts.LabelledText,
    texts.LabelledPrefix,
    fields.BothOfTwo,
    texts.RobustRules,
    numbers.NumberAverage,
    fields.PairCells,
    numbers.AllRanges,
    items.Groups,
    fields.AnyOfTwo,
)
"""In the order of `ldp-server curator release --help`."""

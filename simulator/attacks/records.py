"""Reports of malicious users about records: each stands for one record, or against it, in whatever it is asked.

A device that draws a table answers for its record's cell as strongly as the table's response allows (malicious.py); the
draw itself stays random, since a table that too many are about would show. One that answers every field has the
record's value in each of them, or in all but one: that moves tables with this field down, and others up. For other
mechanisms there is one answer, as about an item.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.records.every_field import EveryField
from ldp_client.mechanisms.records.sampled_table import SampledTable
from simulator import crowd
from simulator.attacks.malicious import malicious_reports

__all__ = ["malicious_records"]

U64 = npt.NDArray[np.uint64]


def malicious_records(randomizer: Randomizer, index: int, count: int, attack: str, seed: int, block: int) -> U64:
    """Return the reports of so many malicious users about the record of this index."""
    if attack != "claim" and isinstance(randomizer, SampledTable):
        return _of_tables(randomizer, index, count, attack, seed, block)
    if attack == "promote" and isinstance(randomizer, EveryField):
        return np.full(count, index, np.uint64)
    if attack == "hide" and isinstance(randomizer, EveryField):
        return _one_lie(randomizer, index, count, seed, block)
    return malicious_reports(randomizer, np.full(count, index, np.uint64), attack, seed, block)


def _of_tables(randomizer: SampledTable, index: int, count: int, attack: str, seed: int, block: int) -> U64:
    shares = np.array(randomizer.ends) / randomizer.ends[-1]
    drawn = np.searchsorted(shares, crowd.draw_words(seed, block, count, 1)[:, 0] / 2.0**64, side="right")
    found = np.empty(count, np.uint64)
    for place in np.unique(drawn).tolist():
        table, users = randomizer.tables[place], np.flatnonzero(drawn == place)
        cells = np.full(len(users), table.cell(index), np.uint64)
        answers = malicious_reports(table.inner, cells, attack, seed, block + 1 + place)
        found[users] = answers + np.uint64(randomizer.starts[place])
    return found


def _one_lie(randomizer: EveryField, index: int, count: int, seed: int, block: int) -> U64:
    """The truth but for the field whose lies count most: weights of several fields are multiplied, also their signs."""
    place = max(range(len(randomizer.steps)), key=lambda i: randomizer.responses[i].q)
    stride, size = randomizer.steps[place]
    own = index // stride % size
    words = crowd.draw_words(seed, block, count, 1)[:, 0]
    other = (words % np.uint64(size - 1) + np.uint64(own + 1)) % np.uint64(size)
    return np.uint64(index - own * stride) + other * np.uint64(stride)

r"""Fair decision maps: chances of decisions for public types, checked by the device and applied to its own type.

A map has a line of whole weights out of 2^64 for each type, a weight for each decision, and distances d(x, y) in units
of 1/`unit`. The device proves with whole numbers, before it uses the map, that similar types are treated alike:

    sum over decisions a of max(0, w_x[a] - w_y[a]) <= d(x, y) 2^64      (total variation)

for every two types, and refuses the map otherwise (Dwork, Hardt, Pitassi, Reingold and Zemel, "Fairness through
awareness", ITCS 2012). The device's own type is used on the device; the decision is not reported. A decision is drawn
once: whoever draws until it pleases has another map.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ldp_client.errors import InvalidSpec

__all__ = ["MOST_DECISIONS", "MOST_TYPES", "DecisionMap"]

MOST_TYPES: Final = 256
MOST_DECISIONS: Final = 64
_WORDS: Final = 1 << 64
_KEYS: Final = ("types", "decisions", "weights", "distances", "unit")


@dataclass(frozen=True)
class DecisionMap:
    """Chances of decisions for each type, of which the device has proved that they treat similar types alike."""

    types: tuple[str, ...]
    decisions: tuple[str, ...]
    weights: tuple[tuple[int, ...], ...]
    """A line for each type, out of 2^64."""
    distances: tuple[tuple[int, ...], ...]
    """Whole numbers of 1/unit; a unit or more apart, nothing is asked of two types."""
    unit: int

    def __post_init__(self) -> None:
        _check_names(self.types, MOST_TYPES, "types")
        _check_names(self.decisions, MOST_DECISIONS, "decisions")
        k, m = len(self.types), len(self.decisions)
        _check_table(self.weights, (k, m), "weights")
        _check_table(self.distances, (k, k), "distances")
        if type(self.unit) is not int or not 1 <= self.unit <= _WORDS:
            raise InvalidSpec("the unit of a map's distances is a whole number from 1 to 2^64")
        if any(sum(line) != _WORDS for line in self.weights):
            raise InvalidSpec("the weights of each type of a map add up to 2^64")
        self._prove()

    def _prove(self) -> None:
        for x, line in enumerate(self.weights):
            for y in range(x):
                allowed = self.distances[x][y]
                if allowed != self.distances[y][x]:
                    raise InvalidSpec("the distances of a map are the same both ways")
                apart = sum(max(0, one - other) for one, other in zip(line, self.weights[y], strict=True))
                if apart * self.unit > allowed * _WORDS:
                    raise InvalidSpec("this map does not treat two similar types alike: it is not used")

    def decide(self, own: str, word: int) -> str:
        """Return the decision for a type, drawn by one random word below 2^64."""
        if own not in self.types:
            raise InvalidSpec("this type is not one of the map's: ask the operator for a map that has it")
        if not 0 <= word < _WORDS:
            raise InvalidSpec("a random word is a whole number below 2^64")
        line, reached, chosen = self.weights[self.types.index(own)], 0, 0
        for weight in line[:-1]:
            reached += weight
            chosen += word >= reached
        return self.decisions[chosen]

    def to_json(self) -> str:
        """Return the map as a file's text; weights are decimal digits, which every reader of JSON keeps."""
        weights = [[str(weight) for weight in line] for line in self.weights]
        values = (self.types, self.decisions, weights, self.distances, self.unit)
        return json.dumps(dict(zip(_KEYS, values, strict=True)), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> DecisionMap:
        """Read and check a map."""
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or set(found) != set(_KEYS):
            raise InvalidSpec(f"a decision map is a JSON object with {', '.join(_KEYS)}")
        if not all(isinstance(found[key], list) for key in _KEYS[:-1]):
            raise InvalidSpec("types, decisions, weights and distances of a decision map are lists")
        weights = tuple(tuple(map(_weight, _listed(line))) for line in found["weights"])
        distances = tuple(tuple(_listed(line)) for line in found["distances"])
        return cls(tuple(found["types"]), tuple(found["decisions"]), weights, distances, found["unit"])


def _listed(line: Any) -> list[Any]:
    if not isinstance(line, list):
        raise InvalidSpec("each line of a decision map's tables is a list")
    return line


def _weight(text: Any) -> int:
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 20:
        raise InvalidSpec("a weight of a decision map is a text of decimal digits")
    return int(text)


def _check_names(names: Sequence[Any], most: int, what: str) -> None:
    if not 2 <= len(names) <= most or not all(isinstance(name, str) and name for name in names):
        raise InvalidSpec(f"a decision map has 2 to {most} {what}, each with a name")
    if len(set(names)) != len(names):
        raise InvalidSpec(f"the {what} of a decision map have different names")


def _check_table(table: Sequence[Sequence[Any]], shape: tuple[int, int], what: str) -> None:
    if len(table) != shape[0] or any(len(line) != shape[1] for line in table):
        raise InvalidSpec(f"the {what} of a decision map are {shape[0]} lines of {shape[1]}")
    if not all(type(one) is int and one >= 0 for line in table for one in line):
        raise InvalidSpec(f"the {what} of a decision map are whole numbers of at least 0")

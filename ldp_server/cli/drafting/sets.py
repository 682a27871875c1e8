"""collection draft --kind sets: how many users hold each item, where a user may hold several."""

from __future__ import annotations

from ldp_client.errors import InvalidSpec
from ldp_server.planning.sets import SetsGoal

__all__ = ["SETS", "read_sizes", "sets_goal"]

SETS = "sets"


def read_sizes(text: str) -> dict[int, float]:
    """Read how many users hold how many items: SIZE:WEIGHT, with commas between them."""
    found: dict[int, float] = {}
    for part in text.split(","):
        size, colon, weight = (one.strip() for one in part.partition(":"))
        try:
            if not colon or not size.isascii() or not size.isdigit() or len(size) > 4 or int(size) in found:
                raise ValueError
            found[int(size)] = float(weight)
        except ValueError:
            raise InvalidSpec(
                'sizes are written "0:20, 1:30, 2:30, 5:20": each number of items once, with its part of the users'
            ) from None
    return found


def sets_goal(
    names: tuple[str, ...],
    sizes: str | None,
    most: int | None,
    wanted: tuple[int | None, str | None, float | None],
    confidence: float,
    share: float | None,
) -> SetsGoal:
    """Return the goal of the options."""
    if not names:
        raise InvalidSpec("a draft of sets needs the items: --answer for each, or --answers with a file of them")
    given = {} if sizes is None else read_sizes(sizes)
    return SetsGoal(names, given, most, *wanted, confidence, 0.1 if share is None else share)

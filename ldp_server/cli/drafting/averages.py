"""collection draft --kind averages: the average of a number in each cell of a table."""

from __future__ import annotations

from collections.abc import Sequence

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Field, Integers, Record
from ldp_server.planning.averages import AveragesGoal

__all__ = ["AVERAGES", "averages_goal"]

AVERAGES = "averages"


def averages_goal(
    fields: Sequence[Field],
    number: str | None,
    wanted: tuple[int | None, str | None, float | None],
    confidence: float,
    share: float | None,
) -> AveragesGoal:
    """Return the goal of the options; without --number the only field of integers is averaged."""
    if number is None:
        numbers = [one.name for one in fields if isinstance(one.domain, Integers)]
        if len(numbers) != 1:
            raise InvalidSpec("a draft of averages needs --number NAME: which of the fields is averaged?")
        number = numbers[0]
    if len(fields) < 2:
        raise InvalidSpec(
            'a draft of averages needs two fields or more, such as --field "plan: free, paid" --field "minutes: 0..600"'
        )
    return AveragesGoal(Record(tuple(fields)), number, *wanted, confidence, share)

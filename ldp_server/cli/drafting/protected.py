"""collection draft --kind tables --field-epsilon: every field of a record at an epsilon of its own."""

from __future__ import annotations

from collections.abc import Sequence

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Field, Record
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.planning.protected import ProtectedGoal, person_epsilon, read_field_epsilons

__all__ = ["protected_goal"]


def protected_goal(
    fields: Sequence[Field],
    given: Sequence[str],
    workload: str | tuple[tuple[str, ...], ...],
    wanted: tuple[int | None, str | None, float | None],
    confidence: float,
) -> ProtectedGoal:
    """Return the goal of the options; an --epsilon must be what the fields add up to."""
    record, epsilons = Record(tuple(fields)), read_field_epsilons(given)
    users, epsilon, within = wanted
    total = person_epsilon(record, epsilons)
    if epsilon is not None and Epsilon.parse(epsilon) != total:
        raise InvalidSpec(
            f"the fields' epsilons add up to {total}, and --epsilon says {epsilon}: leave it out, or make them add up"
        )
    return ProtectedGoal(record, workload, epsilons, users, within, confidence)

"""What the reports of several periods, or of two sides, show of copies (ldp_server/oracles/independence).

Each set of reports is judged alone, and its intervals are widened by what it shows. The answer says the worst of all.
Copies of a report in another period than its own are not looked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ldp_server.oracles.base import Oracle
from ldp_server.oracles.independence.judge import accepted
from ldp_server.oracles.independence.result import INDEPENDENT, Independence, NotIndependent

__all__ = ["accepted_set", "worst_of"]

_MOST_NAMED = 5

Counted = TypeVar("Counted", bound=Oracle)


def accepted_set(oracle: Counted, name: str) -> tuple[Counted, Independence]:
    """Return one set's counts without excess reports, and what they show; a refusal names the set."""
    try:
        return accepted(oracle)
    except NotIndependent as error:
        raise NotIndependent(f"{name}: {error}") from None


def worst_of(sets: Sequence[tuple[str, Independence]]) -> Independence:
    """Return the largest value of each field over named sets of reports, and their warnings with the names.

    `cut` is the sum. `visible_from` is None if copies cannot be seen in one of the sets.
    """
    if not sets:
        return INDEPENDENT
    found = [one for _, one in sets]
    seen = [one.visible_from for one in found if one.visible_from is not None]
    warned = [(name, one) for name, one in sets if one.warnings]
    warnings = [f"{name}: {warning}" for name, one in warned[:_MOST_NAMED] for warning in one.warnings]
    if len(warned) > _MOST_NAMED:
        warnings.append(f"{len(warned) - _MOST_NAMED:,} more periods have such warnings: ask about each of them.")
    return Independence(
        z=max(one.z for one in found),
        variance_factor=max(one.variance_factor for one in found),
        widened=max(one.widened for one in found),
        visible_from=max(seen) if len(seen) == len(found) else None,
        cut=sum(one.cut for one in found),
        warnings=tuple(warnings),
    )

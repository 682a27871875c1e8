"""When a batch is sent again: the random moments that are drawn for batches after they were made.

The moment of the first attempt is drawn when a report is made (client.py). A device that was offline finds several
batches overdue. If all of them left at once, their order of arrival would tell the server that they belong together.
So one leaves, and each other gets a new moment of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from ldp_client.protocol.reasons import WINDOW_SLACK_SECONDS

__all__ = ["LATER_SECONDS", "moment_apart", "moment_later"]

LATER_SECONDS = 3600.0
"""The mean pause after the server has said "later"."""
_SHORTEST = 15.0


def moment_apart(now: float, closes: float, longest: float, uniform: Callable[[], float]) -> float:
    """Return a new moment for an overdue batch: uniform, up to `longest` or half of the rest of its window from now.

    A device that stays on thus never misses the window. Once the window is over there is nothing to wait for.
    """
    return now + uniform() * max(0.0, min(longest, (closes - now) / 2))


def moment_later(now: float, closes: float, uniform: Callable[[], float]) -> float | None:
    """Return when to ask again after "later"; None if the window is over by this device's clock.

    The pause is between half an hour and one and a half, or half of what is left of the window if that is shorter.
    """
    left = closes + WINDOW_SLACK_SECONDS - now
    if left <= 0:
        return None
    return now + max(min(LATER_SECONDS * (0.5 + uniform()), left / 2), _SHORTEST)

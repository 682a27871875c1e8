"""The privacy statement of a collection: what is promised to somebody who reports, and what is not."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ldp_client.collection import Collection
from ldp_client.durations import format_duration

__all__ = ["privacy_statement"]


def _factor(epsilon: float) -> str:
    factor = math.exp(min(epsilon, 700.0))
    return f"{factor:.3g}" if factor < 1e6 else f"{factor:.1e}"


def privacy_statement(collection: Collection) -> Iterator[str]:
    """Sentences, the promise first."""
    epsilon = collection.epsilon
    yield (
        f"One report: epsilon = {epsilon.text}. Whatever two answers a person might have given, each possible report "
        f"is at most e^{epsilon.text} = {_factor(float(epsilon))} times as likely under one as under the other."
    )
    schedule = collection.schedule
    if schedule is None:
        yield "Each device answers once: asking again shows nothing new."
    else:
        total = schedule.reports * epsilon.value
        yield (
            f"A device sends one report every {format_duration(schedule.period_seconds)}, {schedule.reports} at most: "
            f"epsilon = {float(total):g} in all, if every one of them is sent."
        )
    yield "Two devices of one person are two reports; a household of five holds five times the epsilon of one."
    yield (
        "Not hidden by epsilon: that a device takes part, its network address, and when it sends. "
        "Not prevented: people who send false reports on purpose."
    )

"""When reports may go: plain arithmetic of periods.

A *round* is the stretch of time for which a relay holds what comes in. Rounds are counted from 1970, as periods are.

- A question with a schedule has rounds that are its periods.
- A question without one has rounds of the relay's own length (`hold.round`).
- The last round ends with the collection's window, a minute late, because clocks differ. For the same reason a round
  of a question with a schedule ends a minute late.

A report is in the round in which it came, or in that of its own period, if its sender's clock is ahead.
"""

from __future__ import annotations

from dataclasses import dataclass

from ldp_client.protocol.reasons import WINDOW_SLACK_SECONDS

__all__ = ["Rounds"]


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds of one collection."""

    seconds: int
    """The length of one."""
    closes: int
    """When the collection's window ends, in seconds since 1970."""
    scheduled: bool

    @property
    def last(self) -> int:
        """The last round."""
        return (self.closes - 1) // self.seconds

    def ends(self, number: int) -> int:
        """When a round is over, in seconds since 1970."""
        if number >= self.last:
            return self.closes + WINDOW_SLACK_SECONDS
        return (number + 1) * self.seconds + (WINDOW_SLACK_SECONDS if self.scheduled else 0)

    def at(self, now: float) -> int:
        """The first round that is not over; one beyond the last if all are."""
        guess = min(int(now) // self.seconds, self.last)
        if guess > 0 and now < self.ends(guess - 1):
            return guess - 1
        return guess if now < self.ends(guess) else guess + 1

    def of(self, period: int, now: float) -> int:
        """The round of a report that comes now. `period` is the question's, 0 without a schedule."""
        return min(max(self.at(now), period if self.scheduled else 0), self.last)

    def over(self, now: float) -> int:
        """The newest round that is over."""
        return self.at(now) - 1

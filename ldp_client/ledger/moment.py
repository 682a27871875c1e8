"""The ledger's time: what the wall clock says, as far as it may be believed.

Budget becomes free again as time passes, and a wall clock can be set by people, programs and servers. So the ledger's
time is the latest that it has seen, and it goes on only as far as there are grounds:

- The machine's uptime vouches for the time that has passed since the last charge. Nobody can set it, and all processes
  of the machine see the same. After a restart it begins at 0. It then vouches only for the time since the restart,
  which is never more than what has really passed. (Where the system does not name its starts, an uptime that is larger
  than the noted one may be of the same start: then only the difference counts. A ledger that is carried to another
  machine is believed that machine's uptime, as far as the wall clock agrees.)
- Nothing vouches for the time while the machine was off, and a jump of the wall clock looks the same. Such time is
  believed up to one period in all. What was believed is worked off, second by second, by time that is vouched for.

So clocks that jump, however often, renew at most one period's budget, and one more for each period that the machine has
really been up. A machine that is off for more than half of the time gets its budget back late, never early.

Windows and slots follow the wall clock, `wall`: they free no budget.
"""

from __future__ import annotations

from typing import NamedTuple

from ldp_client.clock import Clock
from ldp_client.ledger.schema import State

__all__ = ["Moment", "note_progress", "present"]

_WORTH_NOTING = 3600


class Moment(NamedTuple):
    """A moment of the ledger's time, and what must be remembered of it with a charge."""

    now: int
    """The ledger's time: it decides what is spent."""
    wall: int
    """What the clock says, and not before `now`: it decides windows and slots."""
    uptime: int
    doubt: int
    """The seconds that were believed without grounds and are not worked off yet."""
    boot: str = ""

    def note(self, state: State) -> None:
        """Let the ledger remember this moment."""
        state.seen, state.uptime, state.doubt, state.boot = self.now, self.uptime, self.doubt, self.boot


def present(state: State, clock: Clock, period: int) -> Moment:
    """Return the present moment of a ledger with this state."""
    wall, uptime = int(clock.time()), int(clock.uptime())
    if not state.seen:
        return Moment(wall, wall, uptime, 0, clock.boot())  # nothing was ever charged, so there is nothing to renew
    boot = clock.boot()
    same = uptime >= state.uptime and (boot == state.boot or not (boot and state.boot))
    vouched = uptime - state.uptime if same else uptime
    doubt = max(0, state.doubt - vouched)
    ahead = max(0, wall - state.seen)
    believed = min(max(0, ahead - vouched), max(0, period - doubt))
    now = state.seen + min(ahead, vouched) + believed
    return Moment(now, max(now, wall), uptime, doubt + believed, boot)


def note_progress(state: State, clock: Clock, period: int) -> None:
    """Let the ledger remember the time that has surely passed, although nothing is charged.

    Otherwise the uptime of a machine that is off every night would be forgotten every night, and a budget whose renewal
    takes many days would never come back. No new doubt is noted: until a charge, a jump may be taken back.
    """
    moment = present(state, clock, min(period, state.doubt))
    if moment.now - state.seen >= _WORTH_NOTING:
        moment.note(state)
        state.changed = True

"""Time that has surely passed is remembered without a charge, once it is an hour, and nothing else is."""

import pytest

from ldp_client.ledger.budget import note_progress, present
from ldp_client.ledger.schema import State
from ldp_client.testing import ManualClock
from tests.client.conftest import NOW

PERIOD = 30 * 86_400


def after(seconds, *, up, doubt=0):
    """A ledger last used at NOW by a machine that was up for 1,000 seconds then; a look at it so much later."""
    state = State(b"", 1, NOW, 1, 1, uptime=1000, doubt=doubt, boot="boot 0")
    clock = ManualClock(NOW + seconds)
    clock.up = 1000 + up
    note_progress(state, clock, PERIOD)
    return state


@pytest.mark.parametrize(("seconds", "noted"), [(0, False), (3599, False), (3600, True), (3601, True), (10**6, True)])
def test_an_hour_is_worth_noting(seconds, noted):
    state = after(seconds, up=seconds)
    assert state.changed is noted
    assert (state.seen, state.uptime) == ((NOW + seconds, 1000 + seconds) if noted else (NOW, 1000))


def test_a_jump_that_nothing_vouches_for_is_not_noted():
    state = after(10**6, up=0)
    assert (state.changed, state.seen, state.doubt) == (False, NOW, 0)


def test_no_more_doubt_is_noted_than_there_was():
    """Of 20,000 seconds the uptime vouches for 5,000. They work off old doubt, which may then be believed again."""
    state = after(20_000, up=5000, doubt=8000)
    assert (state.changed, state.seen, state.doubt) == (True, NOW + 10_000, 8000)


@pytest.mark.parametrize("doubt", [PERIOD - 1, PERIOD, PERIOD + 1, 10 * PERIOD])
def test_time_stands_still_where_more_is_in_doubt_than_a_period(doubt):
    """As it may be after the policy's period became shorter."""
    state = State(b"", 1, NOW, 1, 1, uptime=1000, doubt=doubt, boot="boot 0")
    clock = ManualClock(NOW + 100)
    clock.up = 1000
    moment = present(state, clock, PERIOD)
    assert (moment.now, moment.doubt) == ((NOW + 1, PERIOD) if doubt < PERIOD else (NOW, doubt))

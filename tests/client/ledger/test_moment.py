"""The ledger's time: what clocks that jump, stand still or restart can free, which is never more than one period."""

import random

import pytest

from ldp_client import BudgetExceeded
from ldp_client.clock import SystemClock
from ldp_client.ledger.budget import Moment, note_progress, present
from ldp_client.ledger.schema import State
from ldp_client.testing import ManualClock
from tests.client.conftest import NOW, make

DAY = 86_400
PERIOD = 30 * DAY


def fresh(seen=NOW, uptime=1000, doubt=0):
    return State(b"", 1, seen, 1, 1, uptime=uptime, doubt=doubt)


def at(wall, up):
    clock = ManualClock(wall)
    clock.up = up
    return clock


def spend_all(client, number):
    """Report until the budget is spent; return the number of the next question."""
    while True:
        try:
            client.report(make(number), "a")
        except BudgetExceeded:
            return number
        number += 1


@pytest.mark.parametrize("reopened", [False, True])
def test_many_jumps_free_one_period_in_all(open_client, clock, reopened):
    """Twelve jumps within a second freed the budget of the whole life before."""
    client = open_client()
    number = spend_all(client, 0)
    for jump in range(1, 20):
        clock.jump(NOW + jump * 31 * DAY)
        if reopened:
            client.close(0)
            client = open_client()
        number = spend_all(client, number)
    assert client.ledger().spent == 4 == 2 * client._policy.budget


@pytest.mark.parametrize("lease", [None, "1"])
def test_jumps_back_and_forth_and_restarts_free_no_more(open_client, clock, lease):
    client = open_client(lease=lease)
    number = spend_all(client, 0)
    for jump in range(12):
        clock.jump(NOW + (jump + 1) * 40 * DAY)
        number = spend_all(client, number)
        clock.jump(NOW - DAY)
        clock.restart()
        number = spend_all(client, number)
        client.close(0)
        client = open_client(lease=lease)
    client.close(0)
    assert open_client().ledger().spent == 4


def test_a_period_of_uptime_is_a_period(open_client, clock):
    """Once the doubt is worked off, one more period may be believed."""
    client = open_client()
    number = spend_all(client, 0)
    clock.jump(NOW + 1000 * DAY)
    number = spend_all(client, number)
    clock.advance(PERIOD)
    number = spend_all(client, number)
    assert client.ledger().spent == 6
    assert spend_all(client, number) == number


def test_a_machine_that_is_off_most_of_the_time_gets_its_budget_late_and_never_early(open_client, clock):
    """On for a tenth of the time. The first period off is believed; then each day up counts for two."""
    client = open_client()
    number, renewed = spend_all(client, 0), []
    for day in range(300):
        clock.restart(off=0.9 * DAY)
        clock.advance(0.1 * DAY)
        following = spend_all(client, number)
        renewed += [day] if following > number else []
        number = following
    assert client.ledger().spent < 2 * (1 + 300 / 30)
    assert len(renewed) >= 2 and renewed[1] - renewed[0] > 100


def test_random_clocks_never_run_faster_than_they_may():
    """Over any course of charges: the ledger's time gains at most a period and twice what has really passed."""
    draw = random.Random(13)
    for _ in range(300):
        state, clock, real = fresh(uptime=0), ManualClock(NOW), 0.0
        for _ in range(60):
            kind = draw.randrange(4)
            if kind == 0:
                passed = draw.expovariate(1 / draw.choice((10, DAY, 10 * DAY)))
                clock.advance(passed)
                real += passed
            elif kind == 1:
                clock.jump(NOW + draw.uniform(-1, 1) * draw.choice((DAY, 100 * DAY, 10_000 * DAY)))
            elif kind == 2:
                clock.restart()
            moment = present(state, clock, PERIOD)
            assert state.seen <= moment.now <= max(state.seen, clock.time())
            assert 0 <= moment.doubt <= PERIOD
            if draw.randrange(2):
                moment.note(state)
            assert moment.now - NOW <= PERIOD + 2 * real + 1


@pytest.mark.parametrize(
    ("state", "wall", "up", "expected"),
    [
        (fresh(), NOW + 100, 1100, (NOW + 100, NOW + 100, 1100, 0)),  # all of it vouched for
        (fresh(), NOW + 100, 1040, (NOW + 100, NOW + 100, 1040, 60)),  # asleep for a minute
        (fresh(), NOW - 5, 1100, (NOW, NOW, 1100, 0)),  # set back: time stands still
        (fresh(), NOW + 2 * PERIOD, 1000, (NOW + PERIOD, NOW + 2 * PERIOD, 1000, PERIOD)),
        (fresh(doubt=PERIOD), NOW + PERIOD, 1000, (NOW, NOW + PERIOD, 1000, PERIOD)),
        (fresh(doubt=PERIOD), NOW + PERIOD, 1010, (NOW + 20, NOW + PERIOD, 1010, PERIOD)),
        (fresh(), NOW + 500, 200, (NOW + 500, NOW + 500, 200, 300)),  # restarted, and 200 s up since
        (fresh(seen=0), NOW, 7, (NOW, NOW, 7, 0)),  # nothing was ever charged
    ],
)
def test_a_moment(state, wall, up, expected):
    assert present(state, at(wall + 0.9, up + 0.9), PERIOD) == Moment(*expected, "boot 0")


@pytest.mark.parametrize(("boot", "vouched"), [("boot 0", 100), ("", 100), ("another", 1100)])
def test_an_uptime_above_the_noted_one_counts_whole_only_if_the_machine_was_surely_restarted(boot, vouched):
    state = fresh(doubt=PERIOD)
    state.boot = boot
    moment = present(state, at(NOW + PERIOD, 1100), PERIOD)
    assert moment.now == NOW + 2 * vouched


def test_windows_follow_the_clock_even_where_budget_does_not(open_client, clock):
    """A question of next year can be answered after a jump, and its window is judged by the clock."""
    client = open_client()
    client.report(make(0), "a")
    clock.jump(NOW + 400 * DAY)
    late = make(1, opens=NOW + 399 * DAY, closes=NOW + 410 * DAY)
    assert client.due(late)
    assert client.report(late, "a").made


def test_a_lease_outlives_jumps_and_frees_nothing(open_client, clock):
    client = open_client(lease="2")
    number = spend_all(client, 0)
    for jump in range(1, 10):
        clock.jump(NOW + jump * 31 * DAY)
        number = spend_all(client, number)
    client.close(0)
    assert open_client().ledger().spent == 4


def test_the_systems_uptime_only_grows():
    clock = SystemClock()
    first = clock.uptime()
    assert 0 < first <= clock.uptime()


# -- time that has surely passed is remembered without a charge


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

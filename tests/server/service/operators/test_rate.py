"""How many reports come a day, and in how many days half the error is reached."""

import numpy as np
import pytest

from ldp_server.analyst.answers import CollectionEstimates
from ldp_server.analyst.collections import CollectionInfo
from ldp_server.service.live import Arrivals
from tests.server.helpers import NOW, Clock, batch, live, make_collection, taken

HOUR, DAY = 3600, 86_400


def test_a_rate_is_known_after_an_hour():
    arrivals = Arrivals()
    assert arrivals.rate(NOW) == (0.0, 0)
    arrivals.note(50, NOW)
    assert arrivals.rate(NOW + HOUR - 1) == (0.0, 0)
    assert arrivals.rate(NOW + HOUR) == (50 * 24, HOUR)
    arrivals.note(50, NOW + 2 * HOUR)
    assert arrivals.rate(NOW + DAY) == (100, DAY)


def test_a_rate_is_that_of_the_last_week():
    arrivals = Arrivals()
    for day in range(30):
        for hour in range(24):
            arrivals.note(10 if day < 20 else 1, NOW + day * DAY + hour * HOUR)
    per_day, seconds = arrivals.rate(NOW + 30 * DAY)
    assert 7 * DAY - HOUR <= seconds <= 7 * DAY
    assert per_day == pytest.approx(24, rel=0.02)
    assert len(arrivals._hours) <= 7 * 24 + 1
    assert arrivals.rate(NOW + 40 * DAY)[0] == 0


def test_a_clock_that_goes_back_loses_no_report():
    arrivals = Arrivals()
    arrivals.note(5, NOW)
    arrivals.note(5, NOW - 10 * HOUR)
    arrivals.note(5, NOW + HOUR)
    assert arrivals.rate(NOW + 5 * HOUR)[0] == 15 * 24 / 5


async def test_an_answer_says_how_long_half_the_error_takes(tmp_path):
    collection, clock = make_collection(), Clock()
    async with live(tmp_path / "d", clock=clock) as server:
        await server.create(collection)

        async def answer():
            response = await server.call("Estimate", collection, top={"count": 1})
            return CollectionEstimates.of(response)

        taken(await server.collector.Submit(batch(collection, 100)))
        found = await answer()
        assert (found.more_for_half, found.days_for_half) == (300, None)
        assert found.half_in_words.endswith("the server cannot say yet how many days that is")
        clock.now += DAY / 2
        taken(await server.collector.Submit(batch(collection, 100)))
        clock.now += DAY / 2
        found = await answer()
        assert found.info.reports_per_day == pytest.approx(200)
        assert found.info.rate_seconds == DAY
        assert found.days_for_half == pytest.approx(600 / 200)
        assert "takes 600 more reports: 3 days at the present 200 a day" in found.half_in_words
        await server.call("CloseCollection", collection)
        found = await answer()
        assert found.info.reports_per_day is None
        assert found.half_in_words == "half this error, as a share of the users, takes 600 more reports"
        shown = CollectionInfo.of((await server.show(collection)).info)
        assert shown.reports_per_day is None
    assert np.isfinite(found.rows[0].estimate)

"""Searches that a page waits for: each is its session's, a new one ends the old one, and none is kept for ever."""

from __future__ import annotations

import threading
import time

import pytest

from ldp_client.errors import Cancelled, Unavailable
from ldp_server.web import searches as module
from ldp_server.web.searches import HitterSearch, Searches

PATIENCE = 120


class Connection:
    """In the place of an analyst's connection: closing it is all that a search does with it by itself."""

    def __init__(self):
        self.closed = threading.Event()

    def close(self):
        self.closed.set()


class Engine:
    """Answers searches as it is told: it holds them until it is let go."""

    def __init__(self):
        self.begun, self.go, self.answers = threading.Semaphore(0), threading.Event(), []

    def __call__(self, analyst, which, options, progress):
        progress("counting", 0.25)
        self.begun.release()
        assert self.go.wait(PATIENCE)
        progress("listing", 0.5)
        answer = self.answers.pop(0) if self.answers else f"items of {which}"
        if isinstance(answer, Exception):
            raise answer
        return answer

    def wait(self, count=1):
        for _ in range(count):
            assert self.begun.acquire(timeout=PATIENCE)


@pytest.fixture
def engine(monkeypatch):
    engine = Engine()
    monkeypatch.setattr(module, "look_for_items", engine)
    yield engine
    engine.go.set()


@pytest.fixture
def searches(engine):
    found = Searches()
    yield found
    engine.go.set()
    found.close()


def start(searches, session="maria", which="pages"):
    return searches.start(Connection(), session, which, None)


def ended(search):
    """Wait until a search's own thread has let go of everything."""
    assert search.analyst.closed.wait(PATIENCE)
    while search.ended is None:
        time.sleep(0.001)
    return search


def test_a_search_says_how_far_it_is_and_then_what_it_found(searches, engine):
    search = start(searches)
    engine.wait()
    shape = search.shape()
    assert (shape["stage"], shape["fraction"], shape["done"]) == ("counting", 0.25, False)
    assert shape["seconds"] >= 0
    engine.go.set()
    ended(search)
    assert (search.found, search.error) == ("items of pages", None)
    assert {key: search.shape()[key] for key in ("stage", "fraction", "done")} == {
        "stage": "done", "fraction": 1.0, "done": True,
    }  # fmt: skip
    assert search.shape()["seconds"] == search.shape()["seconds"], "the time stands still"


def test_a_search_that_fails_says_so_and_closes_its_connection(searches, engine):
    engine.answers, error = [Unavailable("the server is away")], None
    search = start(searches)
    engine.go.set()
    ended(search)
    assert (search.stage, str(search.error), search.found) == ("ended", "the server is away", error)
    assert search.shape()["done"]


@pytest.mark.parametrize("answer", [None, Cancelled("stopped by the server"), Unavailable("the stream was closed")])
def test_a_search_that_is_cancelled_ends_as_cancelled_whatever_its_connection_says(searches, engine, answer):
    engine.answers = [] if answer is None else [answer]
    search = start(searches)
    engine.wait()
    search.cancel()
    assert search.analyst.closed.is_set(), "so the server stops the search"
    engine.go.set()
    ended(search)
    assert (search.stage, search.found) == ("cancelled", None)
    with pytest.raises(Cancelled, match="the search was cancelled"):
        search.progress("more", 0.9)


def test_a_search_is_its_session_s_own(searches, engine):
    mine = start(searches, "maria")
    assert searches.find(mine.name, "maria") is mine
    assert searches.find(mine.name, "jorge") is None
    assert searches.find("another name", "maria") is None
    assert len(mine.name) == 16 and start(searches, "jorge").name != mine.name
    assert "maria" not in repr(mine)


def test_the_latest_of_a_collection_is_shown(searches, engine):
    first = start(searches, which="pages")
    other = start(searches, which="words")
    assert (searches.latest("maria", "pages"), searches.latest("maria", "words")) == (first, other)
    assert searches.latest("jorge", "pages") is None
    second = start(searches, which="pages")
    assert searches.latest("maria", "pages") is second


def test_a_new_search_of_the_same_collection_cancels_the_old_one_and_no_other(searches, engine):
    old, words, theirs = start(searches), start(searches, which="words"), start(searches, "jorge")
    new = start(searches)
    assert [one.cancelled for one in (old, words, theirs, new)] == [True, False, False, False]


def test_all_searches_of_a_session_end_with_it(searches, engine):
    mine = [start(searches, which=which) for which in ("pages", "words")]
    theirs = start(searches, "jorge")
    searches.end_all_of("maria")
    assert [one.cancelled for one in (*mine, theirs)] == [True, True, False]
    assert [searches.find(one.name, "maria") for one in mine] == [None, None]
    assert searches.find(theirs.name, "jorge") is theirs
    searches.end_all_of("nobody")


def test_when_the_server_ends_all_are_cancelled(searches, engine):
    found = [start(searches, session) for session in ("a", "b")]
    searches.close()
    assert all(one.cancelled for one in found)


def test_at_most_so_many_are_kept_and_the_oldest_go_first(searches, engine, monkeypatch):
    monkeypatch.setattr(module, "_MOST", 3)
    found = [start(searches, session) for session in "abcde"]
    assert [one.cancelled for one in found] == [True, True, False, False, False]
    assert [searches.find(one.name, session) is not None for one, session in zip(found, "abcde", strict=True)] == [
        False, False, True, True, True,
    ]  # fmt: skip


def test_what_is_done_is_forgotten_after_half_an_hour_when_another_one_starts(searches, engine):
    engine.go.set()
    old, young, running = start(searches, "a"), start(searches, "b"), start(searches, "c")
    for one in (old, young, running):
        ended(one)
    old.ended -= module._KEPT_SECONDS + 1
    running.ended = None
    running.started -= 10 * module._KEPT_SECONDS
    assert searches.find(old.name, "a") is old
    start(searches, "d")
    assert searches.find(old.name, "a") is None
    assert searches.find(young.name, "b") is young
    assert searches.find(running.name, "c") is running, "a search that runs is not forgotten"
    assert (module._KEPT_SECONDS, module._MOST) == (1800.0, 50)


def test_a_search_begins_at_nothing():
    search = HitterSearch(Connection(), "pages", "maria", None)
    assert (search.stage, search.fraction, search.found, search.error, search.cancelled) == (
        "starting", 0.0, None, None, False,
    )  # fmt: skip
    search.fraction = 1 / 3
    assert search.shape()["fraction"] == 0.3333
    search.started, search.ended = 5.0, 7.25
    assert (search.seconds, search.shape()["seconds"]) == (2.25, 2.2)

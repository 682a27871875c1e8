from __future__ import annotations

import pytest

from ldp_client import (
    Categories,
    Client,
    Collection,
    Integers,
    LedgerFiles,
    Policy,
    Schedule,
    Sending,
    Sources,
    Strings,
)  # fmt: skip
from ldp_client.clock import SystemClock
from ldp_client.testing import FakeCollector, ManualClock, RepeatableCoins

NOW = 1_800_000_000


def make(
    nonce=0,
    *,
    epsilon="1",
    domain=None,
    mechanism="linear-hash",
    parameters=None,
    text="Which home page do you use?",
    **more,
):
    """A collection; `nonce` makes another question of it. `more`: opens, closes, schedule."""
    domain = domain or Strings(3)
    if parameters is None:
        parameters = {
            "linear-hash": {"q": 2, "t": 24} if domain.size > 100_000 else {"q": 3, "t": 10},
            "hashtogram": {"rows": 4, "q": 3, "t": 4},
            "randomized-response": {},
        }[mechanism]
    if mechanism == "linear-hash" and domain.size > 2**24:
        mechanism, parameters = "hashtogram", {"rows": 4, "q": 3, "t": 4}
    return Collection.create(
        text,
        domain,
        mechanism,
        epsilon,
        parameters=parameters,
        nonce=nonce,
        **({"opens": NOW - 1000, "closes": NOW + 10**8} | more),
    )


def daily(reports=365, period=86_400, **more):
    return make(schedule=Schedule(period, reports), **more)


def live(nonce=0, **more):
    """A collection that is open by the real clock; the same bytes whenever it is made."""
    return make(nonce, **({"opens": 1_700_000_000, "closes": 4_000_000_000} | more))


@pytest.fixture
def policy():
    return Policy(max_epsilon="1", budget="2", period="30 days", lifetime="12")


@pytest.fixture
def wide():
    return Policy(max_epsilon="4", budget="100000", period="30 days", lifetime="200000")


@pytest.fixture
def clock():
    return ManualClock(NOW)


@pytest.fixture
def collector():
    return FakeCollector()


@pytest.fixture
def open_client(tmp_path, policy, clock, collector):
    """Open clients on one storage; by default with everything in the test's hands."""
    opened = []

    def opener(*, transport=collector, clock=clock, coins=None, witness=None, **options):
        """Settings of Sending may be given beside those of Client."""
        of_sending = ("limits", "linkable_tokens", "unlinkable_tokens")
        given = {name: options.pop(name) for name in of_sending if name in options}
        background = options.pop("background", False)
        client = Client(
            transport,
            storage=LedgerFiles(options.pop("storage", tmp_path / "ldp"), witness),
            policy=options.pop("policy", policy),
            sending=Sending(background=background, **given),
            sources=Sources(clock=clock or SystemClock(), coins=coins or RepeatableCoins()),
            **options,
        )
        opened.append(client)
        return client

    yield opener
    for client in opened:
        client.close(1.0)


__all__ = ["NOW", "Categories", "Integers", "daily", "live", "make"]

"""Tokens of operators: used for more than they allow, used after they ended, or sent to another program."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import grpc

from benchmarks.attacks.attack import Attack
from benchmarks.attacks.target import Target, asked, attacked
from benchmarks.row import Row, row
from ldp_client import LdpError
from ldp_server.analyst import Analyst
from ldp_server.store import ROLES, AccessFile

__all__ = ["ATTACKS"]


def _reports(analyst: Analyst, target: Target) -> object:
    with Path("/dev/null").open("wb") as file:
        return analyst.export(target.collection, file, kind="reports")


_BEYOND: dict[str, tuple[Callable[[Analyst, Target], object], ...]] = {
    "ask": (
        lambda analyst, _: analyst.create(asked("of an asker")),
        lambda analyst, target: analyst.close_collection(target.collection),
        lambda analyst, target: analyst.compact_collection(target.collection),
        _reports,
        lambda analyst, target: analyst.delete_collection(target.collection),
    ),
    "create": (
        lambda analyst, target: analyst.close_collection(target.collection),
        lambda analyst, target: analyst.compact_collection(target.collection),
        _reports,
        lambda analyst, target: analyst.delete_collection(target.collection),
    ),
}
"""What a token of each role is used for and does not allow."""


def _succeeds(call: Callable[[], object]) -> bool:
    try:
        call()
    except LdpError:
        return False
    return True


def _roles() -> Iterator[Row]:
    with attacked() as target:
        access = AccessFile(target.server.data / "access.db", time.time)
        done = 0
        for role, calls in _BEYOND.items():
            with Analyst(target.server.analyst_target, token=access.create(f"attacker-{role}", role)) as analyst:
                done += sum(_succeeds(partial(call, analyst, target)) for call in calls)
        access.close()
        tried = sum(map(len, _BEYOND.values()))
        yield row(f"calls that succeed of {tried} that a token's role does not allow", done, "calls", "<= 0")


def _ended() -> Iterator[Row]:
    with attacked() as target:
        access = AccessFile(target.server.data / "access.db", time.time)
        expired = [access.create(f"late-{role}", role, 1) for role in ROLES]
        revoked = [access.create(f"gone-{role}", role) for role in ROLES]
        for role in ROLES:
            access.revoke(f"gone-{role}")
        access.close()
        time.sleep(1.5)
        done = 0
        for token in (*expired, *revoked):
            with Analyst(target.server.analyst_target, token=token) as analyst:
                done += _succeeds(analyst.status)
        yield row(f"calls that succeed with {2 * len(ROLES)} expired and revoked tokens", done, "calls", "<= 0")


def _stranger() -> Iterator[Row]:
    """Another program of this machine listens on another port, and a command is told to call it."""
    seen: list[str] = []

    class Listener(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in the stubs only
        def service(self, details: grpc.HandlerCallDetails) -> None:
            seen.extend(str(value) for key, value in details.invocation_metadata if key == "authorization")

    with attacked() as target:
        listener = grpc.server(ThreadPoolExecutor(1), handlers=[Listener()])
        port = listener.add_insecure_port("127.0.0.1:0")
        listener.start()
        with Analyst.reach(f"127.0.0.1:{port}", target.server.data) as analyst:
            _succeeds(analyst.status)
        listener.stop(0)
        yield row("local tokens that another program of this machine received", len(seen), "tokens", "<= 0")


ATTACKS = (
    Attack("token-roles", "a token is used for what its role does not allow", _roles),
    Attack("token-ended", "a token is used after it expired or was revoked", _ended),
    Attack("token-stranger", "a command on the server's machine is told to call another program there", _stranger),
)

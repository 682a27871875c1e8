"""The token that a running server leaves for commands on its own machine."""

import asyncio
import time

import pytest

from ldp_client.errors import StorageError
from ldp_server.analyst import Analyst, TokenRefused
from ldp_server.service.operators import LocalToken, local_token
from ldp_server.store import AccessFile, DataDirectory
from tests.server.helpers import Clock, ServerProcess, until


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def directory(tmp_path):
    return DataDirectory(tmp_path / "d").create()


@pytest.fixture
def access(directory, clock):
    access = AccessFile(directory.access, clock)
    yield access
    access.close()


@pytest.fixture
def token(directory, access):
    token = LocalToken(directory, access)
    token.renew()
    return token


def text(directory):
    return directory.local_token.read_text().strip()


def test_it_is_for_the_owner_short_lived_and_may_do_everything(directory, access, token, clock):
    found = access.verify(text(directory))
    assert (found.local, found.role, found.expires - found.created) == (True, "manage", 3600)
    assert directory.local_token.stat().st_mode & 0o777 == 0o600
    clock.now += 3600
    assert access.verify(text(directory)) is None


def test_it_is_renewed_when_time_has_passed(directory, access, token, clock):
    first = text(directory)
    assert not token.is_due()
    clock.now += 1199
    assert not token.is_due()
    clock.now += 1
    assert token.is_due()
    token.renew()
    assert not token.is_due()
    assert access.verify(first)  # whoever has just read it is still answered
    assert access.verify(text(directory)).id != access.verify(first).id
    clock.now += 2400
    assert access.verify(first) is None
    assert access.verify(text(directory))


def test_it_is_renewed_when_it_is_gone_revoked_or_the_clock_jumped(directory, access, token, clock):
    directory.local_token.unlink()
    assert token.is_due()
    token.renew()
    access.revoke(access.verify(text(directory)).name)
    assert token.is_due()
    token.renew()
    clock.now += 10**9
    assert token.is_due()
    token.renew()
    assert access.verify(text(directory))
    assert len([one for one in access.tokens() if one.local]) == 1  # old ones are forgotten


def test_renewals_leave_a_few_rows_however_long_the_server_runs(access, token, clock):
    for _ in range(100):
        clock.now += 1200
        token.renew()
    assert len(access.tokens()) <= 4


def test_a_file_left_by_a_crash_in_the_middle_does_no_harm(directory, access, token):
    directory.local_token.with_name("local.token.new").write_text("half")
    token.renew()
    assert access.verify(text(directory))
    assert not directory.local_token.with_name("local.token.new").exists()


def test_it_ends_with_the_server(directory, access, token):
    held = text(directory)
    token.remove()
    assert access.verify(held) is None
    assert not directory.local_token.exists()
    token.remove()


async def test_the_server_renews_it_again_and_again_and_survives_a_full_disk(
    directory, access, token, clock, monkeypatch
):
    monkeypatch.setattr(local_token, "_LOOK", 0.01)
    create, failures = access.create_local, []

    def full(lifetime):
        failures.append(lifetime)
        raise StorageError("no space left")

    running = asyncio.create_task(token.run())
    first = text(directory)
    clock.now += 1200
    await until(lambda: text(directory) != first)
    second = text(directory)
    monkeypatch.setattr(access, "create_local", full)
    clock.now += 1200
    await until(lambda: len(failures) >= 3)
    assert text(directory) == second
    monkeypatch.setattr(access, "create_local", create)
    await until(lambda: text(directory) != second)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def test_a_real_server_leaves_it_and_takes_it_away(tmp_path):
    with ServerProcess(tmp_path / "d") as server:
        file = server.data / "local.token"
        held = file.read_text().strip()
        with server.analyst() as analyst:
            assert analyst.status().version
            with Analyst(server.analyst_target, token=held) as other:
                assert other.status().version
            server.kill()  # nothing is tidied up
            server.start()
            assert file.read_text().strip() != held
            assert analyst.status().version  # it reads the new one
        access = AccessFile(server.data / "access.db", time.time)
        renewed = file.read_text().strip()
        assert access.verify(held).local
        assert access.verify(renewed).local
        server.stop()
        assert not file.exists()
        server.start()
        for ended in (held, renewed):
            assert access.find(ended) is None
            with Analyst(server.analyst_target, token=ended) as other, pytest.raises(TokenRefused):
                other.status()
        access.close()

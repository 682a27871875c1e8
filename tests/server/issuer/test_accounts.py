"""The counts of accounts: limits, retries, periods, and what is on the disk."""

import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from ldp_server.issuer.accounts import Accounts, OverLimit
from ldp_server.store.errors import Corrupt
from tests.server.helpers import Clock

DAY = 86_400


@pytest.fixture
def clock():
    return Clock(1_000 * DAY + 5)


@pytest.fixture
def open_accounts(tmp_path, clock):
    opened = []

    def opener(tokens=3):
        opened.append(Accounts(tmp_path / "issued.db", tokens, 10 * DAY, clock))
        return opened[-1]

    yield opener
    for accounts in opened:
        accounts.close()


def requests(number):
    return [os.urandom(259) for _ in range(number)]


def test_a_limit_for_each_account(open_accounts):
    accounts = open_accounts()
    assert accounts.grant("ann", requests(2)) == 2
    with pytest.raises(OverLimit) as over:
        accounts.grant("ann", requests(2))  # all or none
    assert over.value.seconds == 10 * DAY - 5
    assert accounts.grant("ann", requests(1)) == 1
    assert accounts.grant("bob", requests(3)) == 3
    for account in ("ann", "bob"):
        with pytest.raises(OverLimit):
            accounts.grant(account, requests(1))


def test_a_retry_is_not_counted_again_at_the_limit_or_across_periods(open_accounts, clock):
    accounts, asked = open_accounts(), requests(3)
    assert accounts.grant("ann", asked) == 3
    assert accounts.grant("ann", asked) == accounts.grant("ann", asked[:1]) == 0
    with pytest.raises(OverLimit):
        accounts.grant("ann", [asked[0], *requests(1)])
    assert accounts.grant("bob", asked) == 3  # another account's retry is another token
    clock.now += 10 * DAY
    assert accounts.grant("ann", [*asked, *requests(3)]) == 3
    assert accounts.grant("cat", [b"same", b"same"]) == 1


def test_counts_survive_and_old_ones_go(open_accounts, clock, tmp_path):
    open_accounts().grant("ann", requests(3))
    accounts = open_accounts()
    with pytest.raises(OverLimit):
        accounts.grant("ann", requests(1))
    assert not accounts.sweep()
    clock.now += 20 * DAY
    assert accounts.sweep() and not accounts.sweep()
    with sqlite3.connect(tmp_path / "issued.db") as db:
        assert db.execute("SELECT count(*) FROM issued").fetchone() == (0,)
    db.close()


def test_the_file_names_nobody_and_is_its_owner_s(open_accounts, tmp_path):
    asked = requests(1)
    accounts = open_accounts()
    accounts.grant("ann@example.org", asked)
    accounts.close()
    data = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"ann@example" not in data and asked[0][:16] not in data
    assert (tmp_path / "issued.db").stat().st_mode & 0o077 == 0


def test_a_file_of_something_else_is_refused(open_accounts, tmp_path):
    with sqlite3.connect(tmp_path / "issued.db") as db:
        db.execute("CREATE TABLE other (x)")
    db.close()
    with pytest.raises(Corrupt, match="not a file of an issuer"):
        open_accounts()


@pytest.mark.parametrize("content", [b"", b"x" * 9000])
def test_a_file_that_is_damaged_or_empty_is_not_a_new_one(open_accounts, tmp_path, content):
    """Every account would get its tokens once more, and nobody would be told."""
    (tmp_path / "issued.db").write_bytes(content)
    with pytest.raises(Corrupt, match="all accounts begin anew"):
        open_accounts()
    assert (tmp_path / "issued.db").read_bytes() == content


def test_what_a_killed_issuer_left_is_looked_at_before_it_is_used(open_accounts, tmp_path, clock):
    """A count that is forgotten is a token more."""
    accounts = open_accounts()
    accounts.grant("ann", requests(3))
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for left in (whole, cut):
        left.mkdir()
        for name in ("issued.db", "issued.db-wal", "issued.db-shm"):
            shutil.copy2(tmp_path / name, left / name)
    with closing(Accounts(whole / "issued.db", 3, 10 * DAY, clock)) as again, pytest.raises(OverLimit):
        again.grant("ann", requests(1))
    os.truncate(cut / "issued.db-wal", (cut / "issued.db-wal").stat().st_size // 2)
    with pytest.raises(Corrupt, match=r"issued\.db-wal is damaged or cut off"):
        Accounts(cut / "issued.db", 3, 10 * DAY, clock)

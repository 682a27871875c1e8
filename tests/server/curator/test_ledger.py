"""The ledger: a charge with its release or neither, budgets, and everything that makes it refuse."""

import json
import shutil
import sqlite3
import stat
import threading
from contextlib import closing
from fractions import Fraction
from functools import partial

import pytest

from ldp_client.errors import BudgetExceeded, InvalidSpec, StorageError
from ldp_server.answers.merging.signed import SignedRelease
from ldp_server.curator.engine import KEY_FILE, ReleaseRequest, create_data_set, release
from ldp_server.curator.ledger import CuratorLedger
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.people import PeopleFile
from ldp_server.curator.prices import CentralPrice, DataSetBudget, decimal, price_text
from ldp_server.curator.releases.histogram import GaussianHistogram, LaplaceHistogram, SinhHistogram
from ldp_server.curator.releases.mode import Mode
from ldp_server.service.admission.key_files import load_public_key
from tests.server.helpers import NOW

PEOPLE = PeopleFile(100, {"city": ["rome"] * 60 + ["oslo"] * 40}, b"p" * 32)
TWO = DataSetBudget("pure", Fraction(2), Fraction(1, 1000))
ITEMS = ("rome", "oslo")


@pytest.fixture
def home(tmp_path):
    create_data_set(tmp_path / "home", "panel", TWO, NOW)
    return tmp_path / "home"


def make(home, mechanism=None, data_set="panel", data=PEOPLE, **more):
    mechanism = mechanism or LaplaceHistogram(ITEMS, Fraction(1))
    return release(home, ReleaseRequest(data_set, "city", mechanism, **more), data, ExactDraws(), NOW, "opendp")


def spent(home, name="panel"):
    with CuratorLedger(home) as ledger:
        found = ledger.data_set(name)
    return found.amount, found.delta, found.releases


def test_a_release_is_signed_stored_and_charged(home):
    signed = make(home)
    signed.check(load_public_key(home / f"{KEY_FILE}.pub"))
    assert spent(home) == (1, 0, 1)
    with CuratorLedger(home) as ledger:
        kept = ledger.release(1)
    assert kept.signed == signed
    assert (kept.kind, kept.columns, kept.price.epsilon) == ("histogram", ("city",), 1)
    content = signed.content
    assert (content["people"], content["data_set"], content["number"]) == (100, "panel", 1)
    assert "replacement" in content["statement"][0]
    changed = SignedRelease(signed.body.replace(b'"people":100', b'"people":101'), signed.signature)
    with pytest.raises(InvalidSpec, match="changed afterwards"):
        changed.check(load_public_key(home / f"{KEY_FILE}.pub"))


def test_a_budget_is_spent_exactly(home):
    third = LaplaceHistogram(ITEMS, Fraction(2, 3))
    for _ in range(3):
        make(home, third)
    assert spent(home) == (2, 0, 3)
    with pytest.raises(BudgetExceeded, match="0 of 2 is left"):
        make(home, LaplaceHistogram(ITEMS, Fraction(1, 10**9)))
    assert spent(home) == (2, 0, 3)


def test_the_delta_of_a_budget_is_kept_apart(home):
    make(home, Mode(Fraction(1, 10), Fraction(1, 1250)))
    with pytest.raises(BudgetExceeded, match=r"delta = 0.0008 is needed, and 0.0002 of 0.001 is left"):
        make(home, Mode(Fraction(1, 10), Fraction(1, 1250)))
    assert spent(home) == (Fraction(1, 10), Fraction(1, 1250), 1)


class Breaks(LaplaceHistogram):
    def run(self, records, draws):
        draws.laplace([1], 1.0)
        raise KeyboardInterrupt


def test_what_fails_or_is_stopped_charges_nothing(home):
    with pytest.raises(KeyboardInterrupt):
        make(home, Breaks(ITEMS, Fraction(1)))
    with pytest.raises(InvalidSpec, match="no column"):
        release(
            home, ReleaseRequest("panel", "age", LaplaceHistogram(ITEMS, Fraction(1))), PEOPLE, ExactDraws(), NOW, ""
        )
    with pytest.raises(InvalidSpec, match="there are 'panel'"):
        make(home, data_set="others")
    assert spent(home) == (0, 0, 0)
    make(home)
    assert spent(home) == (1, 0, 1)


def test_releases_at_the_same_time_never_overspend(home):
    """Six threads, a budget for four: four releases, in one chain."""
    price = LaplaceHistogram(ITEMS, Fraction(1, 2))
    outcomes = []

    def one():
        try:
            outcomes.append(make(home, price).content["number"])
        except BudgetExceeded:
            outcomes.append(None)

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for number in outcomes if number) == [1, 2, 3, 4]
    assert outcomes.count(None) == 2
    assert spent(home) == (2, 0, 4)


def test_a_ledger_opens_while_another_process_releases(home, monkeypatch):
    """A release between any two statements of opening is no damage."""
    connect, made = sqlite3.connect, []

    class Interrupted(sqlite3.Connection):
        def execute(self, sql, *values):
            if sql.startswith("SELECT"):
                with monkeypatch.context() as other:
                    other.setattr(sqlite3, "connect", connect)
                    made.append(make(home, LaplaceHistogram(ITEMS, Fraction(1, 10))))
            return super().execute(sql, *values)

    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", partial(connect, factory=Interrupted))
        with CuratorLedger(home):
            pass
    assert len(made) >= 2
    assert spent(home)[2] == len(made)


def test_two_that_create_a_ledger_at_once_have_one(tmp_path, monkeypatch):
    """The other one creates it, enters its data set and releases, between any two statements of the first."""
    connect, home, others = sqlite3.connect, tmp_path / "home", []

    def other():
        if not others:
            others.append("theirs")
            create_data_set(home, "theirs", TWO, NOW)
            make(home, data_set="theirs")

    class Interrupted(sqlite3.Connection):
        moment = ""

        def execute(self, sql, *values):
            if sql.startswith(self.moment):
                with monkeypatch.context() as patched:
                    patched.setattr(sqlite3, "connect", connect)
                    other()
            return super().execute(sql, *values)

    for Interrupted.moment in ("PRAGMA journal_mode", "BEGIN"):
        others.clear()
        shutil.rmtree(home, ignore_errors=True)
        with monkeypatch.context() as patched:
            patched.setattr(sqlite3, "connect", partial(connect, factory=Interrupted))
            create_data_set(home, "mine", TWO, NOW)
        assert others
        assert spent(home, "theirs") == (1, 0, 1)
        assert spent(home, "mine") == (0, 0, 0)


def test_the_same_people_under_a_second_name_have_no_second_budget(home):
    make(home)
    create_data_set(home, "again", TWO, NOW)
    with pytest.raises(InvalidSpec, match="is the data set 'panel' already"):
        make(home, data_set="again")
    assert spent(home, "again") == (0, 0, 0)
    make(home, data_set="again", data=PeopleFile(2, {"city": ["rome", "oslo"]}, b"q" * 32))
    make(home, data=PeopleFile(101, {"city": ["rome"] * 101}, b"r" * 32))  # the panel has grown: its budget goes on
    assert spent(home) == (2, 0, 2)


def test_a_data_set_is_entered_once(home):
    with pytest.raises(InvalidSpec, match="never changed"):
        create_data_set(home, "panel", DataSetBudget("pure", Fraction(9)), NOW)
    for name in ("", "x" * 101, "a\nb"):
        with pytest.raises(InvalidSpec, match="1 to 100 printable"):
            create_data_set(home, name, TWO, NOW)


# -- it fails closed


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE releases SET amount = '0'",
        "DELETE FROM releases",
        "UPDATE data_sets SET budget = ''",
        "DELETE FROM contents",
    ],
)
def test_rows_are_never_changed(home, statement):
    make(home)
    with closing(sqlite3.connect(home / "ledger.db")) as db, pytest.raises(sqlite3.IntegrityError, match="only grows"):
        db.execute(statement)


def test_an_older_copy_is_refused(home):
    make(home)
    shutil.copy(home / "ledger.db", home / "copy")
    make(home)
    shutil.copy(home / "copy", home / "ledger.db")
    with pytest.raises(StorageError, match="older than the last release that left"):
        make(home)


def test_a_crash_between_commit_and_head_keeps_the_charge(home):
    make(home)
    head = (home / "head").read_bytes()
    make(home)
    (home / "head").write_bytes(head)
    assert spent(home) == (2, 0, 2)
    with pytest.raises(BudgetExceeded):
        make(home)


def damage(home, how):
    file = home / "ledger.db"
    if how == "head missing":
        (home / "head").unlink()
    elif how == "head damaged":
        (home / "head").write_text("x")
    elif how == "not a database":
        file.write_bytes(b"x" * 4096)
    elif how == "empty":
        file.write_bytes(b"")
    elif how == "version":
        with closing(sqlite3.connect(file)) as db:
            db.execute("PRAGMA user_version = 9")
    else:
        with closing(sqlite3.connect(file)) as db:
            db.execute("DROP TRIGGER releases_never_deleted")
            db.execute("DROP TRIGGER releases_never_updated")
            db.execute("UPDATE releases SET body = CAST('{}' AS BLOB) WHERE number = 1")
            db.commit()


@pytest.mark.parametrize("how", ["head missing", "head damaged", "not a database", "empty", "version", "changed"])
def test_what_cannot_be_trusted_releases_nothing(home, how):
    make(home, LaplaceHistogram(ITEMS, Fraction(1, 10)))
    make(home, LaplaceHistogram(ITEMS, Fraction(1, 10)))
    damage(home, how)
    with pytest.raises(StorageError):
        make(home)


def test_the_directory_and_its_files_are_for_their_owner(home):
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    make(home)
    for file in home.iterdir():
        assert file.suffix == ".pub" or stat.S_IMODE(file.stat().st_mode) == 0o600
    (home / KEY_FILE).chmod(0o640)
    with pytest.raises(InvalidSpec, match="chmod 600"):
        make(home)
    (home / KEY_FILE).unlink()
    with pytest.raises(InvalidSpec, match="cannot read the curator's key"):
        make(home)
    assert spent(home) == (1, 0, 1)


def test_no_directory(tmp_path):
    with pytest.raises(InvalidSpec, match="curator create"):
        CuratorLedger(tmp_path / "nowhere")


# -- accountings


def test_a_budget_of_rho(home):
    create_data_set(home, "zcdp", DataSetBudget("zcdp", Fraction(1)), NOW)
    make(home, GaussianHistogram(ITEMS, Fraction(1, 4)), "zcdp")
    assert spent(home, "zcdp") == (Fraction(1, 4), 0, 1)
    make(home, LaplaceHistogram(ITEMS, Fraction(1)), "zcdp")  # epsilon^2 / 2
    assert spent(home, "zcdp") == (Fraction(3, 4), 0, 2)
    with pytest.raises(BudgetExceeded, match="delta"):
        make(home, Mode(Fraction(1, 10), Fraction(1, 10**6)), "zcdp")
    with pytest.raises(InvalidSpec, match="every order"):
        make(home, SinhHistogram(ITEMS, Fraction(1, 10), Fraction(3)), "zcdp")


def test_a_budget_of_tcdp(home):
    create_data_set(home, "tcdp", DataSetBudget("tcdp", Fraction(1), omega=Fraction(3)), NOW)
    made = make(home, SinhHistogram(ITEMS, Fraction(1, 10), Fraction(3)), "tcdp")
    assert made.content["charged"] == {"rho": "1/10", "delta": "0"}
    assert "up to order 3" in made.content["statement"][0]
    with pytest.raises(InvalidSpec, match=r"up to order 2\.5 only"):
        make(home, SinhHistogram(ITEMS, Fraction(1, 10), Fraction(5, 2)), "tcdp")
    make(home, GaussianHistogram(ITEMS, Fraction(1, 10)), "tcdp")
    assert spent(home, "tcdp") == (Fraction(1, 5), 0, 2)


def test_a_rho_is_converted_where_the_budget_is_an_epsilon(home):
    mechanism = GaussianHistogram(ITEMS, Fraction(1, 100))
    with pytest.raises(InvalidSpec, match="--conversion-delta"):
        make(home, mechanism)
    make(home, mechanism, conversion_delta=Fraction(1, 10**6))
    amount, delta, _ = spent(home)
    assert delta == Fraction(1, 10**6)
    assert 0.753 < amount < 0.754  # rho + 2 sqrt(rho ln(1/delta))


def test_prices_add_up_in_every_accounting():
    pure, rho = CentralPrice.pure(Fraction(1), Fraction(1, 10)), CentralPrice(rho=Fraction(1, 2), omega=Fraction(4))
    both = pure + rho
    assert (both.epsilon, both.delta, both.rho, both.omega) == (None, Fraction(1, 10), 1, 4)
    assert CentralPrice.from_dict(json.loads(json.dumps(both.as_dict()))) == both
    assert price_text(both) == "rho = 1 up to order 4, delta = 0.1"
    assert pure.epsilon_at(Fraction(1, 20)) == float("inf")
    assert pure.epsilon_at(Fraction(1, 10)) == 1


@pytest.mark.parametrize("text", ["0", "-1", "1e9", "nan", "inf", "1/0", "x", "", "1e-40"])
def test_amounts_are_decimals(text):
    with pytest.raises(InvalidSpec, match="--epsilon"):
        decimal(text, "--epsilon")

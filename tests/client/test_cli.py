"""The command line, as a cron job and a person would use it."""

import io
import json
import sqlite3
import subprocess

import pytest

import ldp_client
from ldp_client import Attributes
from ldp_client.cli import main
from tests.client.collectors import HonestCollector, serving
from tests.client.conftest import Categories, Integers, Strings, live
from tests.client.operators import Operator
from tests.forks import python

LIMITS = ["--max-epsilon", "1", "--budget", "2", "--period", "30 days", "--lifetime", "12"]


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    def runner(*arguments, stdin=b""):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return runner


@pytest.fixture
def files(tmp_path):
    names = {}
    for name, domain, mechanism in (
        ("page", Strings(3), "linear-hash"), ("colour", Categories(("red", "green")), "randomized-response"),
        ("age", Integers(0, 120), "randomized-response"),
        ("habits", Attributes(("smoke", "drive", "drive + vote")), "randomized-response"),
    ):  # fmt: skip
        names[name] = tmp_path / f"{name}.ldp"
        names[name].write_text(live(domain=domain, mechanism=mechanism, text=f"Your {name}?").to_toml())
    return names


def options(tmp_path, port=1):
    return ["--storage", tmp_path / "ldp", "--server", f"localhost:{port}", "--plaintext", *LIMITS]


def test_send_reads_one_line_for_each_collection(run, files, tmp_path):
    collector = HonestCollector()
    with serving(collector) as port:
        code, out, err = run(
            "send", files["page"], files["age"], *options(tmp_path, port), "--delay", 0, "--json", stdin=b"abc\n17\n"
        )
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert [row["report"] for row in found["reports"]] == ["made", "made"]
    assert (found["accepted"], found["waiting"]) == (2, 0)
    assert len(collector.counted) == 2


def test_send_again_says_that_the_answer_stands(run, files, tmp_path):
    run("send", files["page"], *options(tmp_path), "--timeout", 0.1, stdin=b"a\n")
    code, out, _ = run("send", files["page"], *options(tmp_path), "--timeout", 0.1, stdin=b"b\n")
    assert code == 0 and "answered before" in out and "waiting 1" in out  # not due yet: no attempt, no error


def test_looking_changes_nothing(run, files, tmp_path):
    """Not even the outbox of an app with wide limits; and what is due is not sent."""
    run("send", files["page"], *options(tmp_path), "--delay", 0, "--timeout", 0.1, stdin=b"a\n")
    with sqlite3.connect(tmp_path / "ldp" / "ledger.sqlite") as db:
        rest = "answer, collection_id, opens, closes, made, drawn, due, before, size"
        db.execute(
            "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20010) "
            f"INSERT INTO outbox (batch_id, {rest}) SELECT randomblob(16), {rest} FROM outbox, numbers"
        )
    db.close()
    before = {file.name: file.read_bytes() for file in (tmp_path / "ldp").iterdir()}
    collector = HonestCollector()
    with serving(collector) as port:
        code, out, _ = run("outbox", *options(tmp_path, port), "--json")
        assert run("ledger", *options(tmp_path, port))[0] == 0
    assert code == 0 and json.loads(out)["waiting"] == 20011 and json.loads(out)["counters"] == {}
    assert {file.name: file.read_bytes() for file in (tmp_path / "ldp").iterdir()} == before
    assert collector.requests == []


def test_looking_where_nothing_is_makes_nothing(run, tmp_path):
    code, out, _ = run("ledger", *options(tmp_path))
    assert code == 0 and "spent 0 in all, 12 left" in out
    assert run("outbox", *options(tmp_path))[0] == 0
    assert list(tmp_path.iterdir()) == []


def test_send_keeps_what_the_server_does_not_take(run, files, tmp_path):
    code, out, err = run("send", files["page"], *options(tmp_path), "--delay", 0, "--timeout", 5, stdin=b"a\n")
    assert code == 4 and "waiting 1" in out and "connection refused" in err
    with serving(HonestCollector()) as port:
        code, out, _ = run("outbox", *options(tmp_path, port), "--flush", "--json")
    assert code == 0 and json.loads(out)["counters"] == {"accepted": 1}


def test_a_refusal_is_exit_code_one(run, files, tmp_path):
    for _ in range(2):
        code, out, _ = run(
            "send",
            files["page"],
            files["colour"],
            files["age"],
            *options(tmp_path),
            "--timeout",
            0.1,
            stdin=b"a\nred\n5\n",
        )
    assert code == 1 and "budget is spent" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["send", "nowhere.ldp", "--storage", "x", *LIMITS], "nowhere.ldp"),
        (["ledger", "--storage", "x"], "--policy FILE"),
        (["ledger", "--storage", "x", "--max-epsilon", "1", "--budget", "0.5", "--period", "1 day", "--lifetime", "9"],
         "max_epsilon <= budget"),
        (["ledger", "--storage", "x", "--policy", "nowhere"], "nowhere"),
        (["ledger", "--storage", "x", "--policy", "y", "--max-epsilon", "0.1"], "the whole policy"),
        (["ledger", "--storage", "x", "--policy", "y", "--collector-key", "00"], "the whole policy"),
        (["outbox", "--storage", "x", "--server", "far.example.org:1", "--plaintext", *LIMITS], "plain text"),
    ],
)  # fmt: skip
def test_bad_usage_is_one_line_and_nothing_made(run, arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*arguments)
    assert code in {1, 2} and out == "" and said in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_more_lines_than_collections_are_refused(run, files, tmp_path):
    code, _, err = run("send", files["page"], *options(tmp_path), stdin=b"a\nb\n")
    assert code == 2 and "more lines" in err
    assert not (tmp_path / "ldp").exists()


def test_ledger_shows_spent_and_left(run, files, tmp_path):
    run("send", files["page"], *options(tmp_path), "--timeout", 0.1, stdin=b"a\n")
    code, out, _ = run("ledger", *options(tmp_path), "--json")
    view = json.loads(out)
    assert code == 0 and (view["spent"], view["left"], view["left_in_period"]) == ("1", "11", "1")
    assert view["questions"][0]["question"] == "Your page?" and view["problem"] is None
    code, out, _ = run("ledger", *options(tmp_path))
    assert "spent 1 in all, 11 left" in out and "Your page?" in out


def test_ledger_states_the_plain_sum(run, tmp_path):
    from ldp_client import Client, Policy, Sending
    from ldp_client.testing import FakeCollector

    policy = Policy(max_epsilon="1", budget="90", period="30 days", lifetime="90")
    with Client(FakeCollector(), storage=tmp_path, policy=policy, sending=Sending(background=False)) as client:
        for number in range(60):
            client.report(live(number), "a")
    limits = ["--max-epsilon", 1, "--budget", 90, "--period", "30 days", "--lifetime", 90]
    code, out, _ = run("ledger", "--storage", tmp_path, *limits, "--json")
    said = json.loads(out)["statement"]
    assert code == 0 and said[:2] == [
        "This device so far: eps = 60 (added up).",
        "Two such devices of one person or household: eps = 120 (added up).",
    ]


def test_ledger_that_cannot_be_believed_and_its_reset(run, files, tmp_path):
    run("send", files["page"], *options(tmp_path), "--timeout", 0.1, stdin=b"a\n")
    (tmp_path / "ldp" / "ledger.witness").unlink()
    code, out, _ = run("ledger", *options(tmp_path))
    assert code == 3 and "NOT TRUSTED" in out and "witness is missing" in out and ", 0 left" in out
    code, _, err = run("send", files["age"], *options(tmp_path), stdin=b"5\n")
    assert code == 1 or (code == 3 and "cannot be trusted" in err)
    code, _, err = run("ledger", *options(tmp_path), "--reset", " ")
    assert code == 2
    code, out, err = run("ledger", *options(tmp_path), "--reset", "moved to a new disk")
    assert code == 0 and "witness is missing" in err and "moved to a new disk" in out and "spent 1 in all" in out


def test_collections_of_files_and_of_the_list(run, files, tmp_path):
    code, out, _ = run("collections", files["page"], files["age"], "--json")
    assert code == 0 and [json.loads(line)["question"] for line in out.splitlines()] == ["Your page?", "Your age?"]
    operator, listed = Operator(), live(text="Listed?")
    wire = HonestCollector([listed])
    wire.publish(operator, [bytes(32), listed])
    with serving(wire) as port:
        trust = (*options(tmp_path, port), "--list-key", operator.public.hex())
        code, out, err = run("collections", *trust, "--refresh")
        assert code == 0 and "Listed?" in out
        assert "000000000000: " in err and "does not have this collection" in err
        wire.specs.clear()
        code, out, err = run("collections", *trust, "--refresh", "--newest", "1")
        assert code == 0 and "Listed?" in out and not err  # it is kept; the older one is not asked for
    code, out, _ = run("collections", *trust)
    assert code == 0 and "Listed?" in out


def test_explain_a_small_domain_lists_everything(run, files):
    code, out, _ = run("explain", files["colour"], "--json", stdin=b"red\n")
    found = json.loads(out)
    assert code == 0 and found["complete"] and len(found["examples"]) == 3
    from fractions import Fraction

    assert sum(Fraction(example["this_item"]) for example in found["examples"]) == 1
    code, out, _ = run("explain", files["colour"], stdin=b"red\n")
    assert "50:50" in out and "73.2% sure" in out and "2.718282 times" in out
    assert "would answer `none`" not in out
    for nothing in (b"purple\n", b"\n"):
        assert "would answer `none`" in run("explain", files["colour"], stdin=nothing)[1]


def test_explain_charges_nothing_and_needs_no_storage(run, files, tmp_path, monkeypatch):
    monkeypatch.setattr("ldp_client.coins.urandom", None)  # not one coin
    before = sorted(tmp_path.iterdir())
    assert run("explain", files["page"], stdin=b"abc\n")[0] == 0
    assert run("explain", files["habits"], stdin=b"smoke + drive\n")[0] == 0
    assert sorted(tmp_path.iterdir()) == before


def test_the_version(run, capsys):
    with pytest.raises(SystemExit, match="0"):
        run("--version")
    assert capsys.readouterr().out == f"ldp-client, version {ldp_client.__version__}\n"


def test_every_command_has_help():
    for command in ((), ("send",), ("ledger",), ("outbox",), ("collections",), ("explain",)):
        found = subprocess.run(
            [python(), "-m", "ldp_client.cli", *command, "--help"], capture_output=True, text=True, check=True
        )
        assert "usage: ldp-client" in found.stdout


def test_the_prompt_does_not_show_the_item(run, files, tmp_path, monkeypatch):
    asked = []

    def hidden(prompt):
        asked.append(prompt)
        return "abc"

    monkeypatch.setattr("getpass.getpass", hidden)
    monkeypatch.setattr("sys.stdin", type("Tty", (), {"isatty": lambda self: True})())
    assert main(["explain", str(files["page"])]) == 0
    assert asked == ["Your page? (not shown; empty for nothing): "]


@pytest.mark.parametrize(
    ("name", "line", "item"),
    [
        ("page", b"abc", b"abc"), ("page", b"\xff", b"\xff"), ("page", b"", None), ("colour", b"red", "red"),
        ("age", b" 17 ", 17), ("age", b"x", None), ("age", b"9" * 5000, None),
        ("habits", b"smoke + drive", {"smoke", "drive"}), ("habits", b"drive + vote", {"drive + vote"}),
        ("habits", b"smoke", {"smoke"}), ("habits", b"", None), ("habits", b"fly", {"fly"}),
    ],
)  # fmt: skip
def test_lines_as_items(files, name, line, item):
    from ldp_client import Collection
    from ldp_client.cli.items import read_item

    assert read_item(Collection.load(files[name]), line) == item


# -- what the user sees and decides


def test_view_as_json_needs_no_policy_and_sends_nothing(run, files, tmp_path):
    run("send", files["colour"], *options(tmp_path), "--timeout", 0.1, stdin=b"red\n")
    code, out, err = run("view", "--storage", tmp_path / "ldp", files["colour"], files["age"], "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert [question["question"] for question in found["questions"]] == ["Your colour?", "Your age?"]
    assert [len(question["reports"]) for question in found["questions"]] == [1, 0]
    code, out, _ = run("view", *options(tmp_path), "--json", "--reports", 0)
    assert "11 left of 12" in json.loads(out)["spent"][0] and json.loads(out)["questions"][0]["reports"] == []


def test_view_of_a_damaged_ledger_says_so(run, files, tmp_path):
    run("send", files["colour"], *options(tmp_path), "--timeout", 0.1, stdin=b"red\n")
    (tmp_path / "ldp" / "ledger.sqlite").write_bytes(b"damaged" * 999)
    code, out, err = run("view", "--storage", tmp_path / "ldp", "--json")
    assert code == 3 and err == "" and len(json.loads(out)["problems"]) == 1


def test_view_serves_until_nobody_looks(run, tmp_path):
    code, out, err = run("view", "--storage", tmp_path / "ldp", "--idle", "1 s")
    assert code == 0 and "http://127.0.0.1:" in out and "Ctrl-C" in err
    assert not (tmp_path / "ldp").exists()


@pytest.mark.parametrize("wrong", [("--port", 99999), ("--idle", "soon"), ("--reports", -1), ("--max-epsilon", "1")])
def test_view_with_wrong_options(run, tmp_path, wrong):
    code, out, err = run("view", "--storage", tmp_path / "ldp", *wrong)
    assert (code, out) == (2, "") and err.count("\n") == 1


def test_stop_and_resume(run, files, tmp_path):
    storage = ["--storage", tmp_path / "ldp"]
    code, out, _ = run("stop", *storage)
    assert code == 0 and out == "Stopped: this device makes no report, sends nothing and fetches nothing.\n"
    code, out, _ = run("send", files["colour"], *options(tmp_path), "--timeout", 0.1, stdin=b"red\n")
    assert code == 1 and "the user has stopped reports" in out
    assert json.loads(run("view", *storage, "--json")[1])["stopped"] is True
    assert json.loads(run("resume", *storage, "--json")[1]) == {"stopped": False}
    assert run("send", files["colour"], *options(tmp_path), "--timeout", 0.1, stdin=b"red\n")[0] == 0
    (tmp_path / "file").write_text("")
    code, _, err = run("stop", "--storage", tmp_path / "file")
    assert code == 3 and "reports were not stopped" in err and err.count("\n") == 1

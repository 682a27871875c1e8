"""A draft is a file that loads, says what will be learned, and is taken by a server."""

import io
import json
import re

import pytest

from ldp_client.collection import Collection, Schedule
from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Attributes, Categories, Integers, Strings
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.analyst import Analyst
from ldp_server.planning import Goal, QuestionKind, draft
from tests.server.commands import run_here
from tests.server.helpers import ServerProcess

K = QuestionKind
WINDOW = {"opens": 0, "closes": 1 << 33}
GOALS = {
    K.FREQUENCIES: Goal(K.FREQUENCIES, Categories(("tea", 'co"ffee', "\N{HOT BEVERAGE}\n# no comment")), 5000, "1"),
    K.HEAVY_HITTERS: Goal(K.HEAVY_HITTERS, Strings(8), 1_000_000, "1"),
    K.AVERAGE: Goal(K.AVERAGE, Integers(-5, 100), 5000, "1", missing=True),
    K.QUANTILES: Goal(K.QUANTILES, Integers(0, 300), 5000, "1"),
    K.RANGES: Goal(K.RANGES, Integers(0, 300), 5000, "1"),
    K.ATTRIBUTES: Goal(K.ATTRIBUTES, Attributes(("smoke", "drive", "vote")), 5000, "1"),
    K.PAIRS: Goal(K.PAIRS, Attributes(("smoke", "drive", "vote")), 5000, "1"),
}
FLAGS = {
    K.FREQUENCIES: ["--answer", "tea", "--answer", "coffee"],
    K.HEAVY_HITTERS: ["--strings", "8"],
    K.AVERAGE: ["--integers", "-5:94", "--missing"],
    K.QUANTILES: ["--integers", "0:299"],
    K.RANGES: ["--integers", "0:299"],
    K.ATTRIBUTES: ["--answer", "smoke", "--answer", "drive"],
    K.PAIRS: ["--answer", "smoke", "--answer", "drive"],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ServerProcess(tmp_path_factory.mktemp("drafts") / "d") as server:
        yield server


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("kind", K)
@pytest.mark.thinned(1)
def test_a_draft_loads_and_its_comments_say_what_will_be_learned(kind, tmp_path):
    found = draft("What?\n[window]", GOALS[kind], schedule=Schedule(86_400, 30), **WINDOW)
    file = tmp_path / "draft.ldp"
    file.write_text(found.text)
    assert Collection.load(file) == found.collection
    assert found.collection.schedule == Schedule(86_400, 30)
    assert found.collection.randomizer.parameters() == found.plan.parameters | found.collection.randomizer.parameters()
    comments = " ".join(line.removeprefix("#").strip() for line in found.text.splitlines() if line.startswith("#"))
    for sentence in found.promise:
        assert sentence in comments
    assert not any("Careful" in sentence for sentence in found.promise)
    assert any(f"{found.plan.users:,} reports at epsilon = 1" in sentence for sentence in found.promise)
    assert "id =" not in found.text
    assert found.collection.smallest_batch is None
    assert Analyst.draft("What?\n[window]", GOALS[kind], schedule=Schedule(86_400, 30), **WINDOW) == found


@pytest.mark.parametrize("kind", K)
@pytest.mark.thinned(1)
def test_a_relay_never_buys_a_larger_local_epsilon(kind):
    """The plan is that of the question without a relay: whoever works with the relay sees the same reports."""
    plain, relayed = (draft("What?", GOALS[kind], **WINDOW, smallest_batch=size) for size in (None, 1 << 20))
    assert relayed.plan == plain.plan
    assert relayed.collection.epsilon == plain.collection.epsilon == Epsilon("1")
    assert relayed.collection.randomizer == plain.collection.randomizer
    assert relayed.collection.question_id == plain.collection.question_id


@pytest.mark.parametrize("kind", K)
@pytest.mark.thinned(1)
def test_create_takes_what_draft_wrote(kind, server, tmp_path, monkeypatch, capsys):
    file = tmp_path / "draft.ldp"
    flags = ["--kind", kind.value, *FLAGS[kind], "--users", 1_000_000, "--epsilon", "1", "--per-day", 5000]
    flags += ["--opens", "2020-01-01", "--closes", "2099-12-31", "--question", f"{kind.value}?"]
    code, out, err = run_here(monkeypatch, capsys, "collection", "draft", file, *flags)
    assert (code, err) == (0, "")
    assert "at epsilon = 1" in out
    assert "200 days" in out
    code, out, err = run_here(monkeypatch, capsys, "collection", "create", file, "--data", server.data, "--json")
    assert (code, err) == (0, "")
    shown = json.loads(out)
    assert (shown["question"], shown["state"]) == (f"{kind.value}?", "running")
    assert shown["id"] == Collection.load(file).id.hex()
    code, out, err = run_here(monkeypatch, capsys, "collection", "draft", file, *flags)
    assert (code, out) == (2, "")
    assert "exists already" in err


def test_a_draft_with_a_relay(tmp_path, monkeypatch, capsys):
    file, flags = tmp_path / "relay.ldp", ["--kind", "frequencies", "--answer", "yes", "--users", "1000"]
    flags += ["--epsilon", "1", "--question", "Tea?"]
    assert run_here(monkeypatch, capsys, "collection", "draft", file, *flags, "--smallest-batch", "100")[0] == 0
    assert Collection.load(file).smallest_batch == 100
    assert "\n# Reports are sealed" in file.read_text()
    code, _, err = run_here(monkeypatch, capsys, "collection", "draft", "-", *flags, "--smallest-batch", "1")
    assert (code, "--smallest-batch" in err) == (2, True)
    goal = GOALS[QuestionKind.FREQUENCIES]
    with_relay, without = (Analyst.draft("Q?", goal, **WINDOW, smallest_batch=n).collection for n in (100, None))
    assert (with_relay.smallest_batch, without.smallest_batch) == (100, None)
    assert with_relay.question_id == without.question_id


def test_json_has_the_text_and_the_promise(monkeypatch, capsys):
    flags = ["--kind", "frequencies", "--answer", "yes", "--answer", "no", "--question", "Tea?"]
    flags += ["--users", 10_000, "--within", 0.02, "--json"]
    code, out, err = run_here(monkeypatch, capsys, "collection", "draft", *flags)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert set(found) == {"text", "promise", "plan"}
    assert found["plan"]["solved"] == "epsilon"
    assert Collection.from_toml(found["text"]).epsilon.text == found["plan"]["epsilon"]
    code, out, _ = run_here(monkeypatch, capsys, "collection", "draft", *flags[:-1])
    # The window begins now.
    strip = re.compile(r"(opens|closes) = .*")
    assert strip.sub("", out) == strip.sub("", found["text"])


def test_it_asks_on_a_terminal(monkeypatch, capsys, tmp_path):
    answers = Terminal("Tea?\nfrequencies\nyes, no\n10,000\n\n0.5\n")
    code, out, err = run_here(monkeypatch, capsys, "collection", "draft", tmp_path / "tea.ldp", stdin=answers)
    assert code == 0, err
    made = Collection.load(tmp_path / "tea.ldp")
    assert (made.question, made.domain, made.epsilon.text) == ("Tea?", Categories(("yes", "no")), "0.5")
    assert "10,000 reports" in out
    answers = Terminal("Tea?\naverage\n0:10\n\n0.1\n1\n")
    code, out, err = run_here(monkeypatch, capsys, "collection", "draft", "--period", "7 days", stdin=answers)
    assert code == 0, err
    made = Collection.from_toml(out[out.index("# What will") :])
    assert made.domain == Integers(0, 11)
    assert made.schedule == Schedule(604_800, 4)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], "needs --question"),
        (["--question", "Q?"], "needs --kind"),
        (["--question", "Q?", "--kind", "average"], "needs --integers"),
        (["--question", "Q?", "--kind", "average", "--integers", "9:1"], "FIRST:LAST"),
        (["--question", "Q?", "--kind", "average", "--integers", "0:9"], "two of users, epsilon and the error"),
        (
            ["--question", "Q?", "--kind", "average", "--answer", "a", "--users", "9", "--epsilon", "1"],
            "needs --integers",
        ),
        (["--question", "Q?", "--kind", "frequencies", "--answer", "a", "--strings", "4"], "one of them"),
        (["--question", "Q?", "--kind", "frequencies", "--answers", "no/such/file"], "cannot read answers"),
        (["--question", "Q?", "--kind", "average", "--integers", "0:9", "--users", "9", "--epsilon", "x"], "epsilon"),
        (
            [
                "--question",
                "Q?",
                "--kind",
                "average",
                "--integers",
                "0:9",
                "--users",
                "9",
                "--epsilon",
                "1",
                "--opens",
                "yesterday",
            ],
            "a moment is written",
        ),
        (
            [
                "--question",
                "Q?",
                "--kind",
                "average",
                "--integers",
                "0:9",
                "--users",
                "9",
                "--epsilon",
                "1",
                "--opens",
                "2030-01-02",
                "--closes",
                "2030-01-01",
            ],
            "must open before it closes",
        ),
        (
            [
                "--question",
                "Q?",
                "--kind",
                "average",
                "--integers",
                "0:9",
                "--users",
                "9",
                "--epsilon",
                "1",
                "--reports",
                "3",
            ],
            "goes with --period",
        ),
    ],
)
def test_what_is_missing_or_wrong_is_said_in_one_line(flags, words, monkeypatch, capsys):
    code, out, err = run_here(monkeypatch, capsys, "collection", "draft", *flags)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_answers_come_from_a_file(tmp_path, monkeypatch, capsys):
    (tmp_path / "answers").write_text("red\nlight green\n\nblue\n")
    flags = ["--question", "Colour?", "--kind", "frequencies", "--users", "1000", "--epsilon", "2"]
    for source, stdin in ((tmp_path / "answers", None), ("-", io.StringIO("red\nlight green\nblue\n"))):
        code, out, err = run_here(monkeypatch, capsys, "collection", "draft", *flags, "--answers", source, stdin=stdin)
        assert code == 0, err
        assert Collection.from_toml(out).domain == Categories(("red", "light green", "blue"))


def test_a_window_that_is_too_short_is_said():
    goal = Goal(K.AVERAGE, Integers(0, 100), 5000, "1", per_day=100.0)
    assert any("100 reports a day" in one for one in draft("Q?", goal, opens=0, closes=50 * 86_400).promise)
    (short,) = [one for one in draft("Q?", goal, opens=0, closes=49 * 86_400).promise if "Careful" in one]
    assert "for 49 days" in short
    assert "about 4,900" in short
    weekly = draft("Q?", goal, schedule=Schedule(7 * 86_400, 20), opens=0, closes=200 * 86_400).promise
    assert any("for 7 days" in one for one in weekly)


def test_dates_stand_for_their_first_moment():
    text = draft("When?", GOALS[K.AVERAGE], opens=1_767_225_600, closes=1_767_312_000).text
    assert "opens = 2026-01-01T00:00:00Z" in text
    for way in ("{}", '"{}"'):
        short = re.sub(r"= (2026-01-0[12])T00:00:00Z", f"= {way.format('REPLACED')}".replace("REPLACED", r"\1"), text)
        assert "T00" not in short
        made = Collection.from_toml(short)
        assert (made.opens, made.closes) == (1_767_225_600, 1_767_312_000)
    for wrong in ('"2026-1-1"', '"20260101"', '"2026-02-30"', "2026-01-01T00:00:00"):
        with pytest.raises(InvalidSpec, match="a moment"):
            Collection.from_toml(text.replace("2026-01-01T00:00:00Z", wrong))

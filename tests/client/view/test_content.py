"""What the user's page says: true figures, every state of a device, and nothing of an item but what was sent."""

import json
import os
import sqlite3
from fractions import Fraction

import pytest

from ldp_client import Attributes, Categories, Collection, Field, Policy, Record, Schedule, Sets, Strings
from ldp_client.explain import explain
from ldp_client.ledger.database import Storage
from ldp_client.mechanisms import MECHANISMS
from ldp_client.privacy.statement import privacy_statement
from ldp_client.testing import ManualClock, RepeatableCoins
from ldp_client.view import Sight, user_view
from ldp_client.view.pages import page
from tests.client.conftest import NOW, daily, make
from tests.client.ledger.test_looking import everything_in
from tests.client.operators import Operator

COLOUR = make(domain=Categories(("red", "green")), mechanism="randomized-response", text="Your colour?")
WIDE = {"max_epsilon": "10", "budget": "90", "period": "30 days", "lifetime": "120"}


def seen(client, collections=(), **more):
    view = user_view(Sight.of(client), collections, **more)
    assert json.loads(json.dumps(view.as_dict())) is not None
    return view


def test_what_a_relay_is_worth_is_the_statement_s_text(open_client):
    asked = make(
        domain=Categories(("red", "green")), mechanism="randomized-response", text="Your colour?", smallest_batch=5000
    )
    says = seen(open_client(), [asked]).questions[0].says
    lines = [line for line in privacy_statement(asked).lines if "relay" in line]
    assert len(lines) == 2
    assert [line for line in says if "relay" in line] == lines
    plain = seen(open_client(), [COLOUR]).questions[0]
    assert not any("relay" in line for line in (*plain.terms, *plain.says))


def test_where_sealed_reports_go(open_client, tmp_path):
    """The app's relay by name; that there is none; or, on the command line, that it is not known here."""
    collection = make(smallest_batch=100)
    sealed, where = "sealed and go to {}, never straight to", "the relay relay.example.org:443"
    client = open_client(transport="collector.example.org:443", relay="relay.example.org:443")
    view = seen(client, [collection, make(1)])
    assert f"Sealed reports go to {where}, each question's on a connection of its own." in view.asks
    assert sealed.format(where) in " ".join(view.questions[0].terms)
    assert "at least 100 together" in " ".join(view.questions[0].terms)
    assert "relay" not in " ".join(view.questions[1].terms), "a question without one"
    none = seen(open_client(), [collection])
    assert "the app names none: so it is not answered" in " ".join(none.questions[0].terms)
    assert "relay" not in " ".join(none.asks)
    unknown = user_view(Sight(Storage(tmp_path / "none")), [collection])
    assert sealed.format("the relay that the app names") in " ".join(unknown.questions[0].terms)


def test_a_device_that_has_done_nothing(open_client, tmp_path):
    view = seen(open_client())
    assert view.questions == () and view.problems == () and view.trusted and not view.stopped
    assert view.spent[0].startswith("Spent in all: epsilon 0, 12 left of 12")
    assert list(tmp_path.iterdir()) == []
    assert "answered no question yet" in page(view, "x")


def test_a_report_with_its_bytes_and_what_they_say(open_client):
    client = open_client(delay=0)
    client.report(COLOUR, "red")
    (question,) = seen(client, [COLOUR]).questions
    (report,) = question.reports
    assert (question.question, question.answers, question.spent) == ("Your colour?", 1, "1")
    with sqlite3.connect(client._storage.path) as db:
        assert report.bytes == db.execute("SELECT report FROM answers").fetchone()[0].hex()
    db.close()
    assert report.state.startswith("waits; is sent about ")
    chances = dict(report.says)
    law = COLOUR.randomizer
    for index, name in enumerate(("(none of them)", "red", "green")):
        exact = law.probability(index, int.from_bytes(bytes.fromhex(report.bytes), "little"))
        assert chances[name] == f"{float(exact) * 100:.2f}%"
    assert question.says[:2] == tuple(list(explain(COLOUR, "red").lines())[-2:]), "one text from one place"
    assert set(question.says[2:]) == set(privacy_statement(COLOUR, groups=()).lines[:-1]), "as analysts see it"
    client.flush()
    assert seen(client, [COLOUR]).questions[0].reports[0].state == "sent"


@pytest.mark.parametrize("epsilon", ["0.1", "1", "2", "4", "10"])
def test_the_surest_guess_is_a_bound_and_is_reached(open_client, epsilon):
    """The largest posterior over all messages and pairs of answers, exact, is below the printed one, and near it."""
    asked = make(domain=Categories(("a", "b")), mechanism="randomized-response", epsilon=epsilon)
    client = open_client(policy=Policy(**WIDE))
    client.report(asked, "a")
    guess = next(line for line in seen(client, [asked]).questions[0].says if "50:50" in line)
    printed = Fraction(guess.partition("at most ")[2].partition("%")[0]) / 100
    law = asked.randomizer
    true = max(
        law.probability(x, y) / (law.probability(x, y) + law.probability(other, y))
        for y in range(law.bound)
        for x in range(3)
        for other in range(3)
        if x != other
    )
    assert true <= printed < true + Fraction(1, 1000)


def test_without_the_collection_the_charge_speaks(open_client):
    client = open_client()
    client.report(COLOUR, "red")
    (question,) = seen(client).questions
    assert question.terms == () and question.reports[0].says == ()
    assert question.says[0].startswith("One report: eps = 1.") and "73.2%" in question.says[0]


def test_many_reports_of_one_question_are_added(open_client, clock):
    weekly = daily(domain=Categories(("y", "n")), mechanism="randomized-response")
    client = open_client(policy=Policy(**WIDE))
    for _ in range(3):
        client.report(weekly, "y")
        clock.advance(86_400)
    for known in ([weekly], []):
        (question,) = seen(client, known, reports=2).questions
        assert (question.answers, question.spent, len(question.reports)) == (3, "3", 2)
        together = next(line for line in question.says if line.startswith("All 3 reports"))
        assert "epsilon 3" in together and "95.3% sure" in together  # e^3/(1 + e^3) = 0.9526
    assert [report.made for report in question.reports] == sorted((r.made for r in question.reports), reverse=True)
    assert "newest 2 of 3 reports" in page(seen(client, [weekly], reports=2), "x")


def test_a_question_that_may_be_asked(open_client):
    dear = make(7, epsilon="2", domain=Categories(("a",)), mechanism="randomized-response")
    allowed, refused = seen(open_client(), [COLOUR, dear]).questions
    assert any("The policy allows it" in line for line in allowed.terms)
    assert any("does not allow it" in line and "epsilon 2" in line for line in refused.terms)
    assert allowed.says[0].startswith("Your device would send one of 3 possible messages of 1 byte,")


def test_who_asks(open_client, collector):
    operator = Operator()
    collector.public = operator.sign([COLOUR])
    collector.collections[COLOUR.id] = COLOUR
    client = open_client(policy=Policy(**WIDE, list_keys=[operator.public], pinned=[bytes(32)]))
    client.refresh()
    client.fetch(COLOUR.id)
    view = seen(client)
    text = "\n".join(view.asks)
    assert operator.public.hex() in text and "pins 1 questions" in text and "has 1 questions" in text
    assert [question.question for question in view.questions] == ["Your colour?"]  # it was fetched
    collector.public = operator.sign([])
    with pytest.raises(Exception, match="went back"):
        client.refresh()
    (problem,) = seen(client).problems
    assert "must not accept" in problem and "list refused: 1 time" in problem


def test_a_lease_that_paid_for_reports(open_client, clock):
    client = open_client(lease="2", policy=Policy(**WIDE))
    client.report(COLOUR, "red")
    assert any("set aside" in line for line in seen(client).spent)


def test_given_up_reports_are_not_said_to_be_sent(open_client, collector):
    client = open_client(delay=0)
    client.report(COLOUR, "red")
    collector.refuses = "COLLECTION_CLOSED"
    client.flush()
    view = seen(client)
    assert view.questions[0].reports[0].state == "sent, or given up (see the counters)"
    assert "refused COLLECTION_CLOSED: 1" in view.waiting


def damaged(file):
    file.write_bytes(b"no database" * 500)


def unreadable(file):
    file.chmod(0)
    if os.access(file, os.R_OK):
        pytest.skip("this user may read everything")


@pytest.mark.parametrize("damage", [damaged, lambda file: file.unlink(), unreadable, lambda file: file.truncate(100)])
def test_a_ledger_in_any_condition_is_one_clear_line(open_client, tmp_path, damage):
    client = open_client()
    client.report(COLOUR, "red")
    client.close()
    file = tmp_path / "ldp" / "ledger.sqlite"
    if damage.__name__ == "<lambda>" and "truncate" in damage.__code__.co_names:
        with file.open("r+b") as open_file:
            damage(open_file)
    else:
        damage(file)
    view = seen(open_client())
    (problem,) = view.problems
    assert problem.startswith("The ledger of this device cannot be used") and "\n" not in problem
    assert view.spent == ("The whole budget counts as spent.",) and not view.trusted and view.questions == ()
    assert 'role="alert"' in page(view, "x")


def test_looking_opens_no_write_transaction(open_client, tmp_path):
    client = open_client()
    client.report(COLOUR, "red")
    client.outbox()  # opens the connection for looking
    before = everything_in(tmp_path)
    statements = []
    for link in (client._storage._front, client._storage._back):
        if link.db is not None:
            link.db.set_trace_callback(statements.append)
    seen(client, [COLOUR])
    seen(open_client(), [COLOUR])
    assert "BEGIN" in statements and not [one for one in statements if "IMMEDIATE" in one]
    after = everything_in(tmp_path)
    assert {name: data for name, data in after.items() if not name.endswith("-shm")} == {
        name: data for name, data in before.items() if not name.endswith("-shm")
    }


# -- items


def marked(example):
    """An example's domain with names that occur nowhere else, and items of it."""
    domain = example.domain
    if isinstance(domain, Categories):
        names = tuple(f"marker-{number}" for number in range(len(domain.names)))
        return Categories(names), (names[0], names[-1])
    if isinstance(domain, Attributes):
        names = tuple(f"marker-{number}" for number in range(len(domain.names)))
        return Attributes(names), (frozenset(names), frozenset(names[:1]))
    if isinstance(domain, Sets):
        names = tuple(f"marker-{number}" for number in range(len(domain.names)))
        return Sets(names, domain.most), (frozenset(names), frozenset(names[:1]))
    if isinstance(domain, Strings):
        return domain, (b"marker-1234"[: domain.max_bytes], b"")
    if isinstance(domain, Record):
        names = [f"marker-{number}" for number in range(len(domain.names))]
        fields = [Field(name, one.domain) for name, one in zip(names, domain.fields, strict=True)]
        return Record(tuple(fields)), (domain_item(fields, -1), domain_item(fields, 1))
    return domain, (domain.lowest, domain.lowest + domain.count - 1)


def domain_item(fields, index):
    """A record of each field's item with this index, from the end where it is negative."""
    return {field.name: field.domain.item(index % field.domain.size) for field in fields}


def view_of(open_client, directory, asked, item):
    client = open_client(storage=directory, clock=ManualClock(NOW), coins=RepeatableCoins(), policy=Policy(**WIDE))
    client.report(asked, item)
    return user_view(Sight.of(client)), client


def hidden(view):
    """The page's data without the bytes of the reports."""
    data = view.as_dict()
    for question in data["questions"]:
        for report in question["reports"]:
            del report["bytes"]
    return data


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.thinned(8)
def test_an_item_shows_through_its_report_alone(open_client, tmp_path, name):
    """With the same words, the page is the same for every item, but for the report's bytes; no file has the item."""
    kinds = {type(one.domain): one for one in reversed(MECHANISMS[name].examples()) if one.word_bits == 64}
    for number, example in enumerate(kinds.values()):
        domain, items = marked(example)
        parameters = dict(example.parameters)
        window = {"opens": NOW - 1, "closes": NOW + 99}
        asked = Collection.create("Audited?", domain, name, example.epsilon, parameters=parameters, **window)
        expected, _ = view_of(open_client, tmp_path / f"{number}-none", asked, None)
        for place, item in enumerate(items):
            directory = tmp_path / f"{number}-{place}"
            view, client = view_of(open_client, directory, asked, item)
            assert hidden(view) == hidden(expected)
            assert "marker" not in page(view, "x") and "marker" not in json.dumps(view.as_dict())
            client.close()
            assert not any(b"marker" in data for data in everything_in(directory).values())


def test_what_is_shown_is_hidden_from_logs(open_client):
    client = open_client()
    client.report(COLOUR, "red")
    view = seen(client, [COLOUR])
    report = view.questions[0].reports[0]
    assert "bytes=" not in repr(report) and "says=" not in repr(report)


def test_words_of_a_question_cannot_become_code(open_client):
    hostile = make(
        text="<script>alert(1)</script> \u202e\"'&", domain=Categories(("<b>",)), mechanism="randomized-response"
    )
    client = open_client()
    client.report(hostile, "<b>")
    text = page(seen(client, [hostile]), '"><x')
    assert "<script" not in text and "<b>" not in text and "<x" not in text and "\u202e" not in text
    assert "&lt;script&gt;" in text and "\\u202e" in text


def test_a_view_without_the_apps_policy(open_client, tmp_path):
    client = open_client()
    client.report(COLOUR, "red")
    view = user_view(Sight(Storage(tmp_path / "ldp"), clock=ManualClock(NOW)), [COLOUR])
    assert view.spent == (
        "Spent in all: epsilon 1. (What is left depends on the app's policy; give it with --policy.)",
    )
    assert "left" not in " ".join(view.statement) and "not known here" in view.asks[0]


def test_a_schedule_in_words(open_client):
    asked = make(schedule=Schedule(604_800, 52), domain=Categories(("y",)), mechanism="randomized-response")
    assert "once every 1 week, at most 52 times" in seen(open_client(), [asked]).questions[0].terms[0]


def test_a_question_with_a_relay_has_both_numbers(open_client):
    asked = make(smallest_batch=10_000, domain=Categories(("y",)), mechanism="randomized-response")
    (question,) = seen(open_client(), [asked]).questions
    assert any("(local); if the relay is honest" in line for line in question.says)
    assert not any("Not hidden by epsilon" in line for line in question.says), "said once, of the device"

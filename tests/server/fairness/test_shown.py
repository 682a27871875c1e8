"""Answers about fields become tables, files and plots."""

from __future__ import annotations

import pytest

from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_server.analyst import CollectionGaps, CollectionRegression, CollectionRules
from ldp_server.fairness.gaps import gaps_answer
from ldp_server.learning.line import line_answer
from ldp_server.learning.rules import rules_answer
from ldp_server.tables import csv_rows
from tests.server.learning.populations import asked, counted
from tests.server.tables.cases import answer

PEOPLE = Record((Field("group", Categories(("<b>", "two"))), Field("age", Integers(0, 3)), Field("hired", YesNo())))


@pytest.fixture(scope="module")
def answers():
    collection = asked(PEOPLE, epsilon="4")
    crowd = [
        ({"group": group, "age": age, "hired": told}, 300 + 200 * (told == (age > 0)))
        for group in ("<b>", "two") for age in range(3) for told in (True, False)
    ]  # fmt: skip
    oracle = counted(collection, crowd, 1)
    return {
        "gaps": answer(CollectionGaps, collection, gaps_answer(collection, oracle, ("group", "hired"))),
        "rules": answer(CollectionRules, collection, rules_answer(collection, oracle, ("age",), "hired")),
        "line": answer(CollectionRegression, collection, line_answer(collection, oracle, ("age",), "hired")),
    }


@pytest.mark.parametrize("name", ["gaps", "rules", "line"])
@pytest.mark.thinned(1)
def test_rows_are_in_files_frames_and_plots(answers, name):
    found = answers[name]
    rows = list(csv_rows(found.to_csv()))
    assert [float(row["estimate"]) for row in rows] == [row.estimate for row in found.rows]
    assert len(found.to_frame("numpy")["low"]) == len(found.rows)
    plot = found.plot().svg
    labels = {
        "gaps": ("&lt;b&gt;", "share of the group"),
        "rules": ("threshold: age is at least 1", "share of the users about whom it is wrong"),
        "line": ("constant", "age"),
    }[name]
    assert all(label in plot for label in labels)
    assert "Which?" in found._repr_html_()

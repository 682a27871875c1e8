"""Conditions, sets of fields, ranges and online tables, merged: in Python, in the shell, from files, for everybody."""

import json

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec, ServerRefused
from ldp_server.analyst import Condition, condition_of_text, release_conditions, release_ranges, with_volunteers
from ldp_server.answers.merging.asked import NotTheSame
from ldp_server.answers.to_json import to_json


def both(world, name):
    """The options that name a release."""
    return ("--volunteers", world.folder / f"{name}.json", "--curator-key", world.key)


def rows_by_name(found):
    return {str(row.item): row for row in found.rows}


def inside(row, share, width=5.0):
    """Whether the truth is near, by the row's own error: wide enough for all rows of these tests in any run."""
    return abs(row.share - share) <= width * row.standard_error + 0.01 + (row.volunteers_off or 0)


def test_conditions_have_the_answers_of_slices(world):
    """One call for several slices: the same numbers as one slice after the other, all about the same reports."""
    domain = world.records.domain
    conditions = [condition_of_text(domain, text) for text in ("plan: paid; dark: yes", "dark: no", "plan: none, free")]
    conditions.append(Condition("any", {"plan": [None], "dark": [False]}, otherwise=True))
    with world.server.analyst() as analyst:
        found = analyst.conditions(world.records, conditions, confidence=0.9, threshold=500)
        together = analyst.conditions(world.records, conditions, together=True)
        alone = [analyst.table(world.records, where=one.where, confidence=0.9, threshold=500) for one in conditions]
    assert [row.item for row in found.rows] == ["plan: paid; dark: yes", "dark: no", "plan: none, free", "any"]
    for row, one, otherwise in zip(found.rows, alone, (False, False, False, True), strict=True):
        (same,) = one.rows
        assert row.standard_error == pytest.approx(same.standard_error)
        turned = [18_000 - same.estimate, 18_000 - same.high, 18_000 - same.low]
        told = turned if otherwise else [same.estimate, same.low, same.high]
        assert [row.estimate, row.low, row.high] == pytest.approx(told, rel=1e-6)
        assert otherwise or row.verdict is same.verdict
    assert found.everything_else is None
    assert (found.confidence, found.coverage.value, together.coverage.value) == (0.9, "each", "together")
    assert all(b.high - b.low > a.high - a.low for a, b in zip(found.rows, together.rows, strict=True))
    assert json.dumps(to_json(found)).count('"text"') == 4
    assert len(found.to_frame("numpy")["item"]) == 4


def test_conditions_that_make_no_sense(world):
    one = Condition("x", {"plan": ["paid"]})
    with world.server.analyst() as analyst:
        for which, conditions, said in (
            (world.records, [one, one], "name of its own"),
            (world.records, [Condition("x", {"plan": ["gold"]})], "outside the field's domain"),
            (world.records, [Condition("x", {"town": ["rome"]})], "no such field"),
            (world.records, [Condition("x", {})], "a query names fields"),
            (world.records, [Condition(str(k), {"plan": ["paid"]}) for k in range(1001)], "1 to 1,000"),
            (world.cups, [one], "fields"),
        ):
            with pytest.raises(ServerRefused, match=said):
                analyst.conditions(which, conditions)
        with pytest.raises(InvalidSpec, match="at least one condition"):
            analyst.conditions(world.records, [])
    with pytest.raises(InvalidSpec, match="domain of records"):
        condition_of_text(world.cups.domain, "cups: 3")


def test_a_linear_release(world, shell, tmp_path):
    with world.server.analyst() as analyst:
        asked = analyst.show(world.records).info
        files = world.folder / "linear.json", world.key
        conditions = release_conditions(*files, asked)
        found = with_volunteers(analyst.conditions(world.records, conditions), *files)
        some = release_conditions(*files, asked, ["plan:paid;dark:yes", "plan=paid, dark=no"])
        cells = with_volunteers(analyst.table(world.records, ("dark", "plan")), *files)
    assert len(found.rows) == 8
    assert [one.name for one in some] == ["plan: paid; dark: yes", "plan=paid, dark=no"]
    paid, dark = world.truth["paid"], world.truth["dark"]
    named = rows_by_name(found)
    assert inside(named["plan: paid; dark: yes"], (paid & dark).mean())
    assert inside(named["plan: none, free"], (~paid).mean())
    assert inside(named["plan=paid, dark=no"], (paid & ~dark).mean())
    for row in found.rows:
        assert row.standard_error <= min(row.volunteers_error, row.reports_error)
        assert row.volunteers_off is None
    assert len(cells.rows) == 6
    assert cells.fields == ("dark", "plan")
    code, out, err = shell("estimate", world.records.id.hex(), *both(world, "linear"))
    assert (code, err) == (0, "")
    assert "plan: none, free" in out
    assert "2,000 volunteers and 18,000 reports" in out
    (tmp_path / "some").write_text("plan: paid; dark: yes\n")
    options = ("--conditions", tmp_path / "some", "--release", tmp_path / "public", "--json")
    code, out, err = shell("estimate", world.records.id.hex(), *both(world, "linear"), *options)
    assert [row["item"] for row in json.loads(out)["rows"]] == [{"text": "plan: paid; dark: yes"}]
    assert "plan: paid; dark: yes" in next((tmp_path / "public").iterdir()).read_text()


def test_a_linear_release_is_reweighed_by_its_cells(world):
    files = world.folder / "linear.json", world.key
    with world.server.analyst() as analyst:
        alone, by = analyst.table(world.records, ("dark",)), analyst.table(world.records, ("plan",))
    found = with_volunteers(alone, *files, reweigh_by=by)
    (row,) = (row for row in found.rows if row.item["dark"])
    assert inside(row, world.truth["dark"].mean())
    assert found.reweighed_by == ("plan",)
    with pytest.raises(InvalidSpec, match=r"has no table with the fields dark together: it has plan, dark\. A table"):
        with_volunteers(alone, *files)


def test_sets_of_fields(world, shell):
    """Of all sets that were asked each has noise; sets that were learned have a bound instead."""
    paid, dark = world.truth["paid"], world.truth["dark"]
    truth = {"paid": paid.mean(), "dark": dark.mean(), "paid or dark": (paid | dark).mean()}
    for name in ("any-of", "learned"):
        with world.server.analyst() as analyst:
            asked = analyst.show(world.flags).info
            files = world.folder / f"{name}.json", world.key
            found = with_volunteers(analyst.conditions(world.flags, release_conditions(*files, asked)), *files)
        assert {str(row.item) for row in found.rows} == set(truth)
        for row in found.rows:
            assert (row.volunteers_off is None) is (name == "any-of")
            assert inside(row, truth[row.item])
        code, out, err = shell("estimate", world.flags.id.hex(), *both(world, name))
        assert (code, err, "a fit has answered" in out) == (0, "", name == "learned")
    code, out, err = shell("estimate", world.flags.id.hex(), "--fields", "dark", *both(world, "any-of"))
    assert (code != 0, out, err.count("\n")) == (True, "", 1)
    assert "ask without --fields" in err


def test_ranges_of_numbers(world, shell):
    with world.server.analyst() as analyst:
        asked = analyst.show(world.cups).info
        files = world.folder / "ranges.json", world.key
        between = release_ranges(*files, asked)
        found = with_volunteers(analyst.ranges(world.cups, between), *files)
    assert (len(between), between[0], between[24]) == (25, (0, 0), (2, 7))
    cups = world.truth["cups"]
    named = rows_by_name(found)
    for first, last in between:
        assert inside(named[f"cups: {first}..{last}"], np.mean((cups >= first) & (cups <= last)))
    code, out, err = shell("ranges", world.cups.id.hex(), *both(world, "ranges"))
    assert (code, err, "cups: 2..7" in out) == (0, "", True)
    code, out, err = shell("ranges", world.cups.id.hex(), "--between", "1:3", *both(world, "ranges"), "--json")
    assert [row["item"]["text"] for row in json.loads(out)["rows"]] == ["cups: 1..3"]
    code, out, err = shell("ranges", world.cups.id.hex(), *both(world, "linear"))
    assert (code != 0, out, err.count("\n"), "one field of whole numbers" in err) == (True, "", 1, True)


def test_an_online_release(world, shell):
    """Two cells may cost; what the fit has answered has a bound, and what came after the last update is left out."""
    files = world.folder / "online.json", world.key
    content = json.loads(json.loads(files[0].read_text())["release"])
    with world.server.analyst() as analyst:
        table = analyst.table(world.records, ("plan", "dark"))
    found = with_volunteers(table, *files)
    known = [row for row in content["rows"] if row.get("low") is not None]
    assert len(found.rows) == len(known)
    paid, dark = world.truth["paid"], world.truth["dark"]
    for row in found.rows:
        if row.item["plan"] == "paid":
            assert inside(row, (paid & (dark == bool(row.item["dark"]))).mean())
    assert sum(row.volunteers_off is None for row in found.rows) == sum(content["details"]["updated"])
    with pytest.raises(NotTheSame, match="those of a fit have no variance"):
        with_volunteers(table, *files, reweigh_by=table)
    code, out, err = shell("estimate", world.records.id.hex(), "--fields", "plan,dark", *both(world, "online"))
    fitted = sum(content["details"]["updated"]) < len(known)
    assert (code, err, "a fit has answered" in out) == (0, "", fitted)


def test_what_the_reports_cannot_answer_is_one_line(world, shell):
    """Another domain, other values, other fields: a typed error, and no number."""
    for arguments, said in (
        (("estimate", world.flags.id.hex(), *both(world, "linear")), "no field 'plan'"),
        (("estimate", world.cups.id.hex(), *both(world, "linear")), "has none"),
        (("estimate", world.records.id.hex(), *both(world, "ranges")), "no field 'cups'"),
        (("estimate", world.records.id.hex(), *both(world, "online")), "ask with --fields"),
        (("estimate", world.records.id.hex(), "--fields", "dark", *both(world, "online")), "no table with the fields"),
        (("estimate", world.records.id.hex(), "--top", "3", *both(world, "linear")), "without --items"),
        (("ranges", world.numbers.id.hex(), *both(world, "ranges")), "hierarchy"),
    ):
        code, out, err = shell(*arguments)
        assert (code in {1, 2}, out, said in err, "Traceback" in err) == (True, "", True, False), arguments


def test_the_shell_answers_conditions_without_volunteers(world, shell, tmp_path):
    """And its JSON is merged from files, without a server."""
    (tmp_path / "asked").write_text("plan: paid; dark: yes\nplan: none, free\n")
    asks = ("estimate", world.records.id.hex(), "--conditions", tmp_path / "asked")
    code, out, err = shell(*asks)
    assert (code, err, "plan: none, free" in out) == (0, "", True)
    code, out, _ = shell(*asks, "--json")
    (tmp_path / "told.json").write_text(out)
    merge = ("curator", "merge", world.folder / "linear.json", tmp_path / "told.json", "--key", world.key)
    code, out, err = shell(*merge, "--json", data=False)
    assert (code, err) == (0, "")
    assert [row["item"]["text"] for row in json.loads(out)["rows"]] == ["plan: paid; dark: yes", "plan: none, free"]
    (tmp_path / "asked").write_text("plan: gold\n")
    code, out, err = shell(*asks)
    assert (code, out, "a query names values of the field 'plan'" in err) == (1, "", True)

"""Merging tables and averages: intervals that hold, volunteers who are reweighed, and every way to ask for it."""

import json
from fractions import Fraction

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Categories, Field, FieldItems, Record, YesNo
from ldp_server.analyst import average_with_volunteers, with_volunteers
from ldp_server.answers.merging.averages import CohortAverage, merged_average
from ldp_server.answers.merging.cohorts import CohortCount, CohortShare, matched, merged, weighed
from ldp_server.answers.merging.reweighed import reweighed, rolled_up
from ldp_server.answers.merging.sources import LocalFrequencies, merged_averages, merged_frequencies, of_release
from ldp_server.curator.workloads.average import LaplaceAverage
from tests.server.curator.seeded import Seeded

PLAN, DARK = ("free", "paid"), (False, True)
RECORD = Record((Field("plan", Categories(PLAN)), Field("dark", YesNo(none_is_no=True))))


def cell(plan, dark):
    return FieldItems({"plan": plan, "dark": dark})


# -- reweighing


def volunteers_and_reports(rng, *, skewed, noise=3.0):
    """40% of everybody have the paid plan, of the volunteers 80%; dark is liked by 20% of the free and 70% of the paid.

    The reports know both fields, each with an error of one percent.
    """
    people, reports, error = 3000, 50_000, 0.01
    paid = 0.8 if skewed else 0.4
    chances = np.array([(1 - paid) * 0.8, (1 - paid) * 0.2, paid * 0.3, paid * 0.7])
    counts = rng.multinomial(people, chances) + rng.normal(scale=noise, size=4)
    cells = [cell(plan, dark) for plan in PLAN for dark in DARK]
    table = {one: CohortCount(count, noise**2) for one, count in zip(cells, counts, strict=True)}
    shared = rng.multinomial(reports, [0.6 * 0.8, 0.6 * 0.2, 0.4 * 0.3, 0.4 * 0.7]) / reports
    plan_share = shared[2] + shared[3] + rng.normal(scale=error)
    dark_share = shared[1] + shared[3] + rng.normal(scale=error)

    def shares(name, values, second):
        parts = zip(values, (1 - second, second), strict=True)
        return {FieldItems({name: value}): CohortShare(part, error**2, reports) for value, part in parts}

    return table, people, shares("plan", PLAN, plan_share), shares("dark", DARK, dark_share), reports


@pytest.mark.parametrize("skewed", [False, True])
def test_reweighed_volunteers_agree_with_everybody_and_the_interval_holds(skewed):
    """The truth is 40%. Without weights volunteers who have the paid plan too often say 60%."""
    rng = np.random.default_rng(11)
    inside = warned = raw_warned = 0
    errors, local = [], []
    for _ in range(400):
        table, people, plan, dark, reports = volunteers_and_reports(rng, skewed=skewed)
        shares = reweighed(table, ["plan"], ["dark"], plan)
        found = matched(shares, people, dark, reports)
        (row,) = (row for row in found.rows if row.item["dark"])
        inside += row.low <= 0.4 <= row.high
        warned += found.disagree
        errors.append(row.share - 0.4)
        local.append(row.reports - 0.4)
        whole = LocalFrequencies(
            {item: CohortCount(one.share * reports, one.noise * reports**2) for item, one in dark.items()}, reports
        )
        raw_warned += merged(rolled_up(table, ["dark"]), people, whole.counts, reports).disagree
    assert inside >= 370  # of 400 with 95% each: fewer with a probability under 1e-2
    assert warned <= 6
    assert (raw_warned == 400) is skewed
    assert np.mean(np.square(errors)) < np.mean(np.square(local))


def test_the_bound_holds_for_every_correlation():
    """Two sources with a part in common: the stated variance is at least the true one, whatever the correlation."""
    for own, shared, other in ((4.0, 1.0, 9.0), (1.0, 4.0, 1.0), (9.0, 0.0, 4.0), (1.0, 100.0, 1.0)):
        for correlation in (-1.0, -0.3, 0.0, 0.6, 1.0):
            weight, _ = weighed((1.0, own, shared), (0.0, other))
            _, stated = weighed((0.0, own, shared), (0.0, other))
            b, s = weight * shared**0.5, (1 - weight) * other**0.5
            true = weight**2 * own + b * b + s * s + 2 * correlation * b * s
            assert true <= stated * (1 + 1e-12)
    assert weighed((1.0, 9.0, 0.0), (0.0, 4.0)) == pytest.approx((4 / 13, 36 / 13))


def test_groups_with_few_volunteers_are_taken_together():
    table = {cell("free", False): CohortCount(900, 9.0), cell("free", True): CohortCount(100, 9.0)}
    table |= {cell("paid", False): CohortCount(-2, 9.0), cell("paid", True): CohortCount(5, 9.0)}
    table |= {cell(None, False): CohortCount(2, 9.0), cell(None, True): CohortCount(-1, 9.0)}
    plan = {FieldItems({"plan": "free"}): CohortShare(0.9, 1e-4, 1000), None: CohortShare(-0.01, 1e-4, 1000)}
    with pytest.raises(InvalidSpec, match="every cell"):
        reweighed(table, ["plan"], ["dark"], plan)
    plan[FieldItems({"plan": "paid"})] = CohortShare(0.11, 1e-4, 1000)
    shares = reweighed(table, ["plan"], ["dark"], plan)
    assert 0 < shares[FieldItems({"dark": True})].share < 1
    with pytest.raises(InvalidSpec, match="other fields"):
        reweighed(table, ["plan"], ["plan"], plan)


# -- averages


def test_the_interval_of_a_merged_average_holds():
    draws = Seeded(1)
    rng = np.random.default_rng(12)
    made, inside, errors = LaplaceAverage(0, 100, Fraction(1)), 0, []
    for _ in range(200):
        records = [str(one) for one in rng.binomial(100, rng.choice([0.2, 0.6], 400)).tolist()]
        content = {"kind": "average", "people": 400, "statement": ["price"], "parameters": made.parameters()}
        content["details"] = made.run(records, draws).details
        local = float(rng.normal(40, 3.0) + rng.normal(0, 20.6 / 20_000**0.5))
        told = content["details"]["average"]
        one = CohortAverage(told["average"], told["noise_variance"], told["holders"])
        found = merged_average(one, CohortAverage(local, 9.0, 20_000), told["spread"] + told["spread_error"], (0, 100))
        inside += found.low <= 40 <= found.high
        errors.append((found.estimate - 40, found.reports - 40, found.volunteers - 40))
    assert inside >= 180
    squares = np.mean(np.square(errors), axis=0)
    assert squares[0] < 1.05 * min(squares[1:])


# -- every way to ask


def test_one_answer_with_both_sources(world, shell, tmp_path):
    """In process, from Python and in the shell; as a file; and for everybody, on the public pages."""
    folder, server, key, records, numbers = world.folder, world.server, world.key, world.records, world.numbers
    with server.analyst() as analyst:
        alone, by = analyst.table(records, ("dark",)), analyst.table(records, ("plan",))
        found = with_volunteers(alone, folder / "tables.json", key)
        weighed_ = with_volunteers(alone, folder / "tables.json", key, reweigh_by=by)
        average = average_with_volunteers(analyst.average(numbers), folder / "average.json", key)
    assert (found.volunteers, found.reports, found.fields) == (2000, 18_000, ("dark",))
    (row,) = (row for row in found.rows if row.item and row.item["dark"])
    assert row.low < 0.3 < row.high
    assert row.standard_error < row.reports_error
    assert weighed_.reweighed_by == ("plan",)
    assert any(line.startswith("Reports: ") for line in found.statement)
    assert any(line.startswith("Volunteers: price: epsilon = 1") for line in found.statement)
    assert len(found.table) == 2
    assert found.to_csv().startswith('"item","kind","share"')
    assert average.average.standard_error < average.average.reports_error
    options = ("--volunteers", folder / "tables.json", "--curator-key", key)
    asks = ("estimate", records.id.hex(), "--fields", "dark", *options)
    code, out, err = shell(*asks, "--reweigh-by", "plan")
    assert (code, err) == (0, "")
    assert "like everybody else in plan" in out
    assert "Volunteers: price" in out
    code, out, _ = shell(*asks, "--json")
    assert json.loads(out)["rows"][1]["item"] == {"record": {"dark": True}}
    code, out, _ = shell(*asks, "--release", tmp_path / "public")
    assert code == 0
    assert len(list((tmp_path / "public").iterdir())) == 1
    number = ("average", numbers.id.hex(), "--volunteers", folder / "average.json", "--curator-key", key)
    code, out, err = shell(*number)
    assert (code, err) == (0, "")
    assert "2,000 volunteers and 18,000 reports" in out


def test_what_cannot_be_merged_is_one_line(world, shell):
    folder, key, records, numbers = world.folder, world.key, world.records, world.numbers
    table, mean = folder / "tables.json", folder / "average.json"
    for arguments, said in (
        (("estimate", records.id.hex(), "--fields", "dark", "--volunteers", table), "--curator-key"),
        (("estimate", records.id.hex(), "--fields", "dark", "--volunteers", mean, "--curator-key", key), "merged"),
        (("average", numbers.id.hex(), "--volunteers", table, "--curator-key", key), "another kind"),
        (("average", numbers.id.hex(), "--volunteers", mean, "--curator-key", mean), "public key"),
    ):
        code, out, err = shell(*arguments)
        assert (code in {1, 2}, out, err.count("\n")) == (True, "", 1)
        assert said in err


def test_a_table_that_the_release_has_not(world):
    folder = world.folder
    content = json.loads(json.loads((folder / "tables.json").read_text())["release"])
    with pytest.raises(InvalidSpec, match="it has plan, dark"):
        of_release(content, ("town",))
    with pytest.raises(InvalidSpec, match="ask with --fields"):
        of_release(content)
    rolled, people = of_release(content, ("dark",))
    assert people == 2000
    assert sum(one.count for one in rolled.values()) == pytest.approx(2000, abs=60)
    assert {one.variance for one in rolled.values()} == {3 * content["details"]["tables"][0]["variance"]}
    with pytest.raises(InvalidSpec, match="another form"):
        merged_frequencies({"kind": "tables", "people": 3}, LocalFrequencies({}, 5, ("dark",)))
    with pytest.raises(InvalidSpec, match="another form"):
        merged_averages({"kind": "average"}, None)

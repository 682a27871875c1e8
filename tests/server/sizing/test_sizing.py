"""The arithmetic of a deployment: worked out a second time, at its edges, and what the command says of bad input."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from ldp_client.errors import InvalidSpec
from ldp_server.sizing.deployment import Load, Prices, sized
from ldp_server.sizing.figures import MEASURED, ROWS, Figures, read_figures
from tests.server.helpers import ROOT, cli

PLAIN = Figures(**dict.fromkeys(ROWS, 100.0))
"""Everything costs 100: so a sum can be done in the head."""
LOADS = [
    Load(1e3),
    Load(1e6),
    Load(1e9),
    Load(1e9, own_connections=True),
    Load(1e9, reports_of_a_batch=1000),
    Load(1e12, days_kept=7, decodes_a_day=0),
]


def test_a_small_case_by_hand():
    found = sized(Load(864_000, peak=2, busy=0.5, report_bytes=100, decodes_a_day=2), PLAIN, standbys=0)
    assert found.reports_a_day == 864_000
    assert found.batches_a_second == 20  # 10 a second, twice as many at the peak
    assert found.collectors == 2  # 20 x 100 us / 0.5 is nothing, and one may fail
    # 20 commits, 20 batches, 20 in upkeep, 100 us each, at half a core
    assert found.database_cores == pytest.approx(20 * 300e-6 / 0.5)
    assert found.upkeep_cores == pytest.approx(20 * 100e-6)
    assert found.ids_gb == pytest.approx(864_000 * 100 / 1e9)
    assert found.counting_seconds_a_day == 8640
    assert found.decoding_seconds_a_day == 200
    assert found.databases == 1
    # commit, batch, upkeep, and 100 bytes: once in a block, once (100 of 4,000 bytes more) in a segment
    plain = 864_000 * (300 + 100 * (1 + 100 / 4000))
    pages = 864_000 * 100 / 8192
    a_round = 1800 * 10  # ids between two checkpoints
    images = 86_400 / 1800 * 8192 * pages * (1 - math.exp(-a_round / pages))
    assert found.log_gb_a_day == pytest.approx((plain + images) / 1e9)


@pytest.mark.parametrize("load", LOADS)
def test_page_images_are_bounded(load):
    """No page is written more often than once between two checkpoints, and none without an id that came."""
    figures = read_figures(MEASURED)
    small = replace(figures, index_disk=1e-9)
    with_images = sized(load, figures).log_gb_a_day - sized(load, small).log_gb_a_day
    batches = load.users_a_day / load.reports_of_a_batch
    pages = load.days_kept * batches * figures.index_disk / 8192
    rounds = 86_400 / (load.checkpoint_minutes * 60)
    assert 0 <= with_images * 1e9 <= 8192 * min(batches, rounds * pages) * (1 + 1e-9)


@pytest.mark.parametrize("load", LOADS)
def test_more_users_never_need_less(load):
    figures, more = read_figures(MEASURED), replace(load, users_a_day=load.users_a_day * 3)
    few, many = sized(load, figures, Prices(1, 1, 1)), sized(more, figures, Prices(1, 1, 1))
    for name, value in vars(few).items():
        if isinstance(value, int | float):
            assert getattr(many, name) >= value, name


def test_gateways_and_proxies_need_fewer_collectors():
    figures = read_figures(MEASURED)
    own, proxy, gateways = (
        sized(load, figures).collectors
        for load in (Load(1e9, own_connections=True), Load(1e9), Load(1e9, reports_of_a_batch=1000))
    )
    assert own > proxy > gateways == 2


def test_waiting_longer_for_a_group_makes_fewer_commits():
    figures = read_figures(MEASURED)
    quick, slow = sized(Load(1e9), figures), sized(Load(1e9, linger_seconds=0.03), figures)
    fewer = (min(quick.batches_a_second, quick.collectors / 0.002) - slow.collectors / 0.03) * figures.commit_us * 1e-6
    assert quick.database_cores - slow.database_cores == pytest.approx(fewer / 0.6)
    page = (ROOT / "docs" / "sizing.md").read_text()
    assert f"take {slow.database_cores:.1f} cores" in " ".join(page.split())


def test_it_says_where_one_is_not_enough():
    figures = read_figures(MEASURED)
    assert sized(Load(1e6), figures).warnings == ()
    found = sized(Load(1e11, days_kept=3), figures)
    assert found.databases == math.ceil(found.database_cores / 16)
    texts = " ".join(found.warnings)
    for words in ("databases of 16 cores", "one upkeep works at a time", "larger than 256 GB"):
        assert words in texts


def test_money_is_the_sum_of_its_parts():
    found = sized(Load(1e8), PLAIN, Prices(10, 0, 0))
    assert found.cost == 10 * found.cores
    assert sized(Load(1e8), PLAIN, Prices(0, 0, 2)).cost == pytest.approx(2 * found.disk_gb)
    assert sized(Load(1e8), PLAIN).cost is None
    bare = sized(Load(1e8), PLAIN, standbys=0)
    assert found.disk_gb == pytest.approx(2 * bare.disk_gb)


@pytest.mark.parametrize(
    "changes",
    [{"users_a_day": 0}, {"users_a_day": math.inf}, {"peak": math.nan}, {"peak": 0.5}, {"busy": 1.1}, {"busy": 0},
     {"reports_of_a_batch": 0.5}, {"days_kept": -1}, {"decodes_a_day": -1}, {"decodes_a_day": math.nan}],
)  # fmt: skip
def test_a_load_that_makes_no_sense_is_refused(changes):
    with pytest.raises(InvalidSpec):
        replace(Load(1e6), **changes)


def test_the_shipped_figures_are_what_benchmarks_print():
    names = set()
    for line in MEASURED.read_text().splitlines():
        row = json.loads(line)
        assert set(row) == {"name", "value", "unit", "target", "ok", "yardstick"}
        names.add(row["name"])
    assert names == set(ROWS.values())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{}", "line 1 of .* is not a row"),
        ("[1]", "line 1 of .* is not a row"),
        ("nonsense", "line 1 of .* is not a row"),
        ('{"name": "disk of a batch", "value": -1}', "must be above 0"),
        ('{"name": "disk of a batch", "value": NaN}', "must be above 0"),
        ('{"name": "something else", "value": 1}', "no file has the row"),
    ],
)
def test_figures_that_cannot_be_used_are_refused(tmp_path, text, why):
    path = tmp_path / "figures.json"
    path.write_text(text)
    with pytest.raises(InvalidSpec, match=why):
        read_figures(path)


def test_the_command(tmp_path):
    shown = cli("size", "--users-a-day", "1e9", "--prices", "25,3,0.1")
    assert shown.returncode == 0, shown.stderr
    found = json.loads(cli("size", "--users-a-day", "1e9", "--prices", "25,3,0.1", "--json").stdout)
    for text in (f"{found['collectors']:,} processes", f"{found['cores']:,} cores", f"{found['cost']:,.0f} at these"):
        assert text in shown.stdout
    own = tmp_path / "own.json"
    own.write_text(json.dumps({"name": ROWS["call_us"], "value": 1e6}))
    slow = json.loads(cli("size", "--users-a-day", "1e9", "--figures", str(own), "--json").stdout)
    assert slow["collectors"] == math.ceil(found["batches_a_second"] / 0.6)
    for wrong in (["--prices", "1,2"], ["--prices", "a,b,c"], ["--prices", "-1,0,0"], ["--figures", "/no/such/file"],
                  ["--peak", "nan"]):  # fmt: skip
        refused = cli("size", "--users-a-day", "1e6", *wrong)
        assert refused.returncode == 2
        assert "Traceback" not in refused.stderr
        assert len(refused.stderr.strip().splitlines()) == 1

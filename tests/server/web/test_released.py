"""Released answers: what the commands write, and what everybody may read."""

import json
from dataclasses import replace

import pytest

from ldp_client.errors import InvalidSpec, StorageError
from ldp_server import released
from ldp_server.analyst import CollectionMerged
from ldp_server.answers.merging.cohorts import CohortCount, merged
from ldp_server.answers.merging.sources import LocalFrequencies
from ldp_server.answers.to_json import dump, to_json
from ldp_server.cli.main import cli, load
from ldp_server.released import read_released, write_released
from tests.server.web.conftest import browsing, site_for
from tests.server.web.test_pages import Page


async def test_an_answer_with_two_sources_says_what_volunteers_were_promised(world, tmp_path):
    """Their number, their budget, the warning; all of it as text."""
    site = site_for(world.server)
    site.public, site.released = True, tmp_path
    which = "linear-hash"
    with world.server.analyst() as analyst:
        found = analyst.estimate(world.collections[which], every_item=True)
    items = {row.item: CohortCount(row.estimate / 9, 4.0) for row in found.rows}
    made = merged(items, found.reports // 9, LocalFrequencies.of(found).counts, found.reports)
    lines = ("all releases may cost epsilon = 4", "<script>alert(2)</script>")
    both = CollectionMerged(
        info=found.info, **{**vars(made), "volunteers_statement": lines, "warning": "the two <b>disagree</b>"}
    )
    write_released(tmp_path, both, 1_800_000_000)
    async with browsing(world, None, site, address="192.0.2.1") as browser:
        text = (await browser.get(f"/public/{world.which(which)}")).text
    assert "Two sources" in text and f"{found.reports // 9:,} volunteers" in text
    assert "all releases may cost epsilon = 4" in text
    assert "<script>alert(2)" not in text and "<b>disagree" not in text and "disagree" in text
    site.close()


async def test_a_released_answer_is_shown_to_everybody(world, tmp_path):
    """As it was at its moment, with hostile items as text; a file that is none shows nothing and is no error page."""
    site = site_for(world.server)
    site.public, site.released = True, tmp_path
    address = f"/public/{world.which('hostile')}"
    with world.server.analyst() as analyst:
        found = analyst.estimate(world.collections["hostile"], every_item=True)
        file = write_released(tmp_path, found, 1_800_000_000)
    async with browsing(world, None, site, address="192.0.2.1") as browser:
        page = await browser.get(address)
        assert page.status_code == 200 and "2027-01-15" in page.text and "<script>alert" not in page.text
        cells = Page(page.text).texts
        assert any("alert(1)" in cell for cell in cells) and f"{found.rows[0].estimate}" in cells
        data = (await browser.get(f"{address}/question.json")).json()["released"]
        assert data["answer"] == json.loads(dump(to_json(found))) and data["released"] == 1_800_000_000
        assert (await browser.get(f"/public/{world.which('linear-hash')}/question.json")).json()["released"] is None
        good = file.read_text()
        for bad in ("", "[]", "{}", good[:-20], good.replace("released-1", "released-2"), "[" * 9999, "x" * 5_000_000):
            file.write_text(bad)
            page = await browser.get(address)
            assert page.status_code == 200 and "No answer to this question has been released" in page.text
        file.write_text(good)
        (tmp_path / f"{world.collections['linear-hash'].id.hex()}.json").write_text(good)  # of another collection
        assert (await browser.get(f"/public/{world.which('linear-hash')}/question.json")).json()["released"] is None
        file.unlink()
        assert "No answer to this question has been released" in (await browser.get(address)).text
    site.close()


def test_what_cannot_be_released(world, tmp_path, monkeypatch):
    with world.server.analyst() as analyst:
        found = analyst.estimate(world.collections["hostile"], top=1)
        hidden = replace(found, info=replace(found.info, unlisted=True))
        with pytest.raises(InvalidSpec, match="unlisted"):
            write_released(tmp_path, hidden, 1)
        (tmp_path / "file").write_text("")
        with pytest.raises(StorageError):
            write_released(tmp_path / "file", found, 1)
        monkeypatch.setattr(released, "MAX_BYTES", 100)
        with pytest.raises(InvalidSpec, match="100 at most"):
            write_released(tmp_path, found, 1)
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("hostile", "estimate"),
        ("bounded-number", "average"),
        ("hierarchy", "quantiles"),
        ("composed-response", "attributes"),
    ],
)
def test_every_kind_of_answer_can_be_released(world, tmp_path, capsys, name, command):
    load()
    options = ["--data", str(world.server.data), "--release", str(tmp_path)]
    cli.main([command, world.which(name), *options], standalone_mode=False)
    assert "in " in capsys.readouterr().out
    shown = read_released(tmp_path, world.collections[name].id)
    assert shown.rows and len(shown.columns) == len(shown.rows[0]) and "statement" in str(shown.metadata)

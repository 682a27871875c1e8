"""Recounts and decodes of exported files, on threads and processes; tests of a real cluster are in test_cluster.py."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from ldp_client.errors import InvalidSpec, Unavailable
from ldp_server.answers.to_json import to_json
from ldp_server.heavy_hitters import decode
from ldp_server.offline import (
    CountsFile,
    Engine,
    count_part,
    decode_file,
    merged,
    parts_of,
    processes,
    results,
    this_process,
)
from tests.server.heavy_hitters.cases import EXPANDER, collection, filled
from tests.server.helpers import ROOT, cli
from tests.server.offline.cases import COLLECTION, dies_once, exported, loop


def recount(engine, files, work=count_part, largest=3000):
    parts = parts_of(COLLECTION, files, engine.slots, largest)
    return merged(COLLECTION, (oracle for _, oracle in results(engine, work, parts))).to_bytes()


def test_parts_cover_every_report_once(tmp_path):
    files = exported(tmp_path, 1000, 0, 1, 777)
    width = COLLECTION.randomizer.report_bytes
    for slots, largest in ((1, 1 << 30), (2, 1 << 30), (7, 1 << 30), (1, 100), (5000, 1 << 30), (1, 1)):
        parts = parts_of(COLLECTION, files, slots, largest)
        assert all(part.length > 0 and part.length % width == 0 for part in parts)
        for path in files:
            mine = sorted((part.start, part.length) for part in parts if part.path == str(path))
            ends = [start + length for start, length in mine]
            assert [start for start, _ in mine] == ([0, *ends[:-1]] if mine else [])
            assert (ends[-1] if mine else 0) == path.stat().st_size
    assert len(parts_of(COLLECTION, files, 2)) <= 4  # large, and as many as work at a time
    assert parts_of(COLLECTION, exported(tmp_path, 0), 4) == []


@pytest.mark.parametrize("make", [lambda: None, lambda: ThreadPoolExecutor(3), lambda: ProcessPoolExecutor(2)])
def test_counts_are_those_of_a_loop_to_the_bit(tmp_path, make):
    files = exported(tmp_path, 20_000, 12_345)
    executor = make()
    engine = Engine(executor, 2)
    try:
        assert recount(engine, files) == loop(files)
    finally:
        if executor is not None:
            executor.shutdown()


def test_no_more_than_a_few_results_wait():
    with ThreadPoolExecutor(2) as threads:
        begun = []
        found = results(Engine(threads, 2), lambda thing: begun.append(thing) or thing * thing, range(100))
        first = next(found)
        assert len(begun) <= 5
        assert dict([first, *found]) == {place: place * place for place in range(100)}


def test_what_has_not_begun_is_cancelled_when_a_task_fails():
    with ThreadPoolExecutor(1) as threads:
        begun = []

        def work(thing):
            begun.append(thing)
            raise InvalidSpec("no")

        with pytest.raises(InvalidSpec, match="no"):
            list(results(Engine(threads, 1), work, range(50)))
    assert len(begun) <= 2


def test_a_process_that_is_killed_ends_the_recount_with_one_line(tmp_path):
    files = exported(tmp_path, 5000)
    with processes(2) as engine, pytest.raises(Unavailable, match="was killed"):
        recount(engine, files, dies_once)


def test_an_engine_that_has_gone_is_noticed(monkeypatch):
    from threading import Event

    monkeypatch.setattr("ldp_server.offline.running._LOOK", 0.01)
    end = Event()
    with ThreadPoolExecutor(1) as threads:
        try:
            with pytest.raises(Unavailable, match="it went"):
                list(results(Engine(threads, 1, lambda: "it went"), lambda _: end.wait(60), range(3)))
        finally:
            end.set()


def test_a_file_that_changes_or_holds_something_else_is_refused(tmp_path):
    (path,) = exported(tmp_path, 1000)
    width = COLLECTION.randomizer.report_bytes
    (part,) = parts_of(COLLECTION, [path], 1)
    path.write_bytes(path.read_bytes() + bytes(width))
    with pytest.raises(InvalidSpec, match="has changed"):
        count_part(part)
    path.write_bytes(b"\xff" * width * 1000)
    with pytest.raises(InvalidSpec, match="does not hold reports of this collection"):
        count_part(part)
    path.unlink()
    with pytest.raises(InvalidSpec, match=r"cannot read .* where it is counted"):
        count_part(part)
    with pytest.raises(InvalidSpec, match="cannot read"):
        parts_of(COLLECTION, [path], 1)
    path.write_bytes(bytes(width * 5 + 1))
    with pytest.raises(InvalidSpec, match="is it cut off"):
        parts_of(COLLECTION, [path], 1)
    path.write_bytes(bytes(width * 5))
    with pytest.raises(InvalidSpec, match="named twice"):
        parts_of(COLLECTION, [path, tmp_path / "." / path.name], 1)


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    """Exported counts of two collections with popular items, and what a plain decode finds in them."""
    folder, found = tmp_path_factory.mktemp("counts"), {}
    for number in range(2):
        spec = collection("expander-sketch", EXPANDER, nonce=number)
        oracle = filled(spec, {7 + number: 6000, 99: 5000}, 20_000, seed=number)
        path = folder / f"counts{number}"
        path.write_bytes(oracle.to_bytes())
        path.with_name(path.name + ".ldp").write_text(spec.to_toml())
        found[path] = (spec, decode(spec, oracle))
    return found


@pytest.mark.long
def test_decodes_side_by_side_are_those_of_one_after_the_other(counts):
    jobs = [CountsFile(spec.spec_bytes, str(path)) for path, (spec, _) in counts.items()]
    expected = [answer for _, answer in counts.values()]
    assert all(answer.items for answer in expected)
    with ThreadPoolExecutor(2) as threads:
        assert [found for _, found in sorted(results(Engine(threads, 2), decode_file, jobs))] == expected
    with this_process() as engine:
        assert [found for _, found in results(engine, decode_file, jobs)] == expected


def test_a_file_that_holds_no_counts_is_refused(counts, tmp_path):
    spec = next(iter(counts.values()))[0].spec_bytes
    path = tmp_path / "counts"
    path.write_bytes(b"nothing")
    with pytest.raises(InvalidSpec, match="does not hold counts of this collection"):
        decode_file(CountsFile(spec, str(path)))
    path.unlink()
    with pytest.raises(InvalidSpec, match="cannot read"):
        decode_file(CountsFile(spec, str(path)))


@pytest.mark.long
def test_the_commands(counts, tmp_path):
    files = exported(tmp_path, 3000, 500)
    out = tmp_path / "out"
    done = cli("offline", "count", *map(str, files), "--out", str(out), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["reports"] == 3500
    assert out.read_bytes() == loop(files)
    assert out.stat().st_mode & 0o077 == 0
    assert out.with_name("out.ldp").read_text() == COLLECTION.to_toml()
    shown = cli("offline", "decode", *map(str, counts), "--limit", "1")
    assert shown.returncode == 0, shown.stderr
    answers = [json.loads(line) for line in cli("offline", "decode", *map(str, counts), "--json").stdout.splitlines()]
    for answer, (path, (_, expected)) in zip(answers, counts.items(), strict=True):
        assert answer["file"] == str(path)
        assert answer["answer"] == json.loads(json.dumps(to_json(expected)))
        assert str(path) in shown.stdout


def test_bad_input_of_the_commands(counts, tmp_path):
    (path,) = exported(tmp_path, 10)
    other = next(iter(counts))
    bare = tmp_path / "bare"
    bare.write_bytes(b"")
    out = ("--out", str(tmp_path / "out"))
    for words, why in (
        (["count", str(path), str(other), *out], "several collections"),
        (["count", str(bare), *out], "name the collection's file with --spec"),
        (["count", str(path), *out, "--processes", "2", "--scheduler", "tcp://127.0.0.1:1"], "not both"),
        (["decode", str(path)], "hold"),
    ):
        refused = cli("offline", *words)
        assert refused.returncode == 2, refused.stderr
        assert why in refused.stderr
        assert len(refused.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_without_dask_one_line_says_what_to_install(tmp_path):
    (path,) = exported(tmp_path, 10)
    code = (
        "import sys; sys.modules['distributed'] = None; from ldp_server.cli.main import run; "
        f"sys.argv = ['ldp-server', 'offline', 'count', {str(path)!r}, '--out', {str(tmp_path / 'out')!r}, "
        "'--scheduler', 'tcp://127.0.0.1:1']; run()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip() == "ldp-server: a Dask cluster needs distributed: pip install 'hearsay[dask]'"

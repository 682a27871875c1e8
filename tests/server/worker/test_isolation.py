"""The child process: imports nothing from the working directory."""

import os
import sys
from pathlib import Path

import pytest

from ldp_server.child import safe_command, safe_environment
from ldp_server.worker import client
from tests.server.helpers import batch, live, make_collection, send

PLANTED = "import pathlib\npathlib.Path(__file__).with_name('it-ran').touch()\nraise ImportError('planted')\n"


@pytest.mark.parametrize("empty_entry", [False, True])
async def test_a_module_planted_in_the_working_directory_does_not_run(tmp_path, monkeypatch, empty_entry):
    async with live(tmp_path / "d") as server:
        collection = make_collection()
        await server.create(collection)
        await send(server, [batch(collection, 5)])
    for name in ("numpy", "json", "ldp_server"):
        (tmp_path / f"{name}.py").write_text(PLANTED)
    monkeypatch.chdir(tmp_path)
    if empty_entry:
        monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setattr(client, "safe_command", safe_command)  # other tests fork their children
    worker = client.Worker(tmp_path / "d", memory_mb=4096, nice=0)
    try:
        assert (await worker.summary(1)).reports == 5
    finally:
        await worker.close()
    assert not (tmp_path / "it-ran").exists()


def test_a_child_s_path_begins_with_the_program_s_own_directory(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", ".", str(tmp_path), "relative", "/opt/libraries"])
    entries = safe_environment({"A": "b"})["PYTHONPATH"].split(os.pathsep)
    assert entries[1:] == ["/opt/libraries"]
    assert (Path(entries[0]) / "ldp_server").is_dir()
    assert safe_environment({"A": "b"})["A"] == "b"
    assert safe_command("ldp_server", "x") == [sys.executable, "-P", "-m", "ldp_server", "x"]

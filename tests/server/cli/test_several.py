"""The commands with a store of several databases, as an operator gives it."""

import json
import os

import pytest

from ldp_server.store.engines import open_store
from tests.server.commands import run_command
from tests.server.store.contract.batches import a_batch, add


def command(*arguments, **environment):
    return run_command([*arguments], {**os.environ, "COLUMNS": "300", **environment}, None, 120)


@pytest.mark.long
def test_prepare_doctor_and_tokens(postgres, tmp_path):
    first, second = postgres.database(), postgres.database()
    both = f"{first} {second}"
    found = command("store", "prepare", "--store", both, "--roles", "--json")
    assert (found.returncode, found.stderr) == (0, "")
    assert json.loads(found.stdout)["store"].count("postgresql://") == 2
    found = command("token", "create", "maria", "--out", str(tmp_path / "token"), LDP_SERVER_STORE=both)
    assert (found.returncode, found.stderr) == (0, "")
    log = open_store(both, tmp_path).writer()
    number = add(log)
    log.append([a_batch(number) for _ in range(20)])
    log.check()
    found = command("doctor", "--store", both, "--json")
    shapes = [json.loads(line) for line in found.stdout.splitlines()]
    assert {one["what"]: one["verdict"] for one in shapes}["log"] == "ok"
    wrong = f"{second} {first}"
    for arguments, said in (
        (("store", "prepare", "--store", wrong), "is number 2 of its store: name all databases in their order"),
        (("doctor", "--store", wrong), "is number 2 of 2 databases, and store names it as number 1 of 2"),
        (("doctor", "--store", first), "is number 1 of 2 databases, and store names it as the only one"),
    ):
        found = command(*arguments)
        assert found.returncode != 0
        assert said in found.stdout + found.stderr
        assert "Traceback" not in found.stderr
    log._logs[1].transaction(lambda db: db.execute("DELETE FROM hearsay.collections"))
    found = command("doctor", "--store", both)
    assert (found.returncode, "lacks a collection that" in found.stdout) == (1, True)
    log.close()

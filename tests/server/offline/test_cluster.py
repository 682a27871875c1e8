"""Recounts and decodes on a real Dask cluster: a scheduler and two worker processes. One is killed, or all of it goes.

Dask comes with the extra `long`; `.ci/run` installs it, and there its absence is a failure.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings

import pytest

from ldp_client.errors import InvalidSpec, Unavailable
from ldp_server.heavy_hitters import decode
from ldp_server.offline import CountsFile, count_part, dask_cluster, decode_file, merged, parts_of, results
from tests.server.heavy_hitters.cases import EXPANDER, collection, filled
from tests.server.helpers import cli
from tests.server.offline.cases import COLLECTION, exported, loop, slowly

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore:::distributed", "ignore:::tornado")]

TASKS = 8


def local_cluster(workers=2):
    if os.environ.get("REQUIRE_LONG"):
        import distributed
    else:
        distributed = pytest.importorskip("distributed", reason="pip install --editable '.[long]'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1"
        )


@pytest.fixture(scope="module")
def cluster():
    with local_cluster() as found:
        yield found


@pytest.fixture
def files(tmp_path):
    return exported(tmp_path, 60_000, 40_000)


def parts(files):
    return parts_of(COLLECTION, files, TASKS, sum(path.stat().st_size for path in files) // TASKS)


def test_counts_of_a_cluster_are_those_of_a_loop_to_the_bit(cluster, files):
    with dask_cluster(cluster.scheduler_address) as engine:
        assert engine.slots == 2
        counted = (oracle for _, oracle in results(engine, count_part, parts(files)))
        assert merged(COLLECTION, counted).to_bytes() == loop(files)


def test_counts_are_exact_after_a_worker_was_killed_at_work(cluster, files):
    with dask_cluster(cluster.scheduler_address) as engine:
        found = results(engine, slowly, parts(files))
        first = next(found)
        worker = next(one for one in cluster.workers.values() if one.status.name == "running")
        pid = worker.pid
        assert len(parts(files)) > TASKS // 2
        os.kill(pid, signal.SIGKILL)
        rest = list(found)
        assert merged(COLLECTION, (oracle for _, oracle in [first, *rest])).to_bytes() == loop(files)
        assert sorted(place for place, _ in [first, *rest]) == list(range(len(parts(files))))
    assert pid not in {one.pid for one in cluster.workers.values() if one.process and one.process.is_alive()}


def test_the_command_runs_on_a_cluster(cluster, files, tmp_path):
    out = tmp_path / "out"
    words = ("offline", "count", *map(str, files), "--out", str(out), "--scheduler", cluster.scheduler_address)
    done = cli(*words)
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == loop(files)


def test_a_worker_that_cannot_read_a_file_says_so(cluster, files):
    made = parts(files)
    files[1].unlink()
    with dask_cluster(cluster.scheduler_address) as engine, pytest.raises(InvalidSpec, match="must see the same files"):
        list(results(engine, count_part, made))


CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    here = {"host": "127.0.0.1", "protocol": "tcp", "dashboard_address": "127.0.0.1:0"}
    found = LocalCluster(n_workers=1, threads_per_worker=1, processes=False, **here)
    print(found.scheduler_address, flush=True)
    sys.stdin.read()
"""


def test_a_cluster_that_is_killed_is_one_line(files, tmp_path, capfd):
    program = tmp_path / "cluster.py"
    program.write_text(CLUSTER)
    with subprocess.Popen(
        [sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            with dask_cluster(process.stdout.readline().strip()) as engine:
                found = results(engine, time.sleep, [0, 300, 300])
                next(found)
                process.kill()
                with pytest.raises(Unavailable) as lost:
                    list(found)
        finally:
            process.kill()
    assert len(str(lost.value).splitlines()) == 1
    assert "has gone: begin again when it is back" in str(lost.value)
    assert capfd.readouterr().err == ""


def test_decodes_on_a_cluster(cluster, tmp_path):
    spec = collection("expander-sketch", EXPANDER)
    oracle = filled(spec, {7: 6000, 99: 5000}, 20_000)
    path = tmp_path / "counts"
    path.write_bytes(oracle.to_bytes())
    with dask_cluster(cluster.scheduler_address) as engine:
        found = dict(results(engine, decode_file, [CountsFile(spec.spec_bytes, str(path))] * 3))
    assert list(found.values()) == [decode(spec, oracle)] * 3


def test_a_cluster_that_is_not_there_is_one_line(files, tmp_path):
    done = cli("offline", "count", *map(str, files), "--out", str(tmp_path / "o"), "--scheduler", "tcp://127.0.0.1:1")
    assert done.returncode == 4
    (line,) = done.stderr.strip().splitlines()
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in line
    done = cli("offline", "count", *map(str, files), "--out", str(tmp_path / "o"), "--scheduler", "nonsense://x")
    assert done.returncode in {2, 4}
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_cluster_without_workers_is_one_line():
    with (
        local_cluster(0) as empty,
        pytest.raises(Unavailable, match="has no workers"),
        dask_cluster(empty.scheduler_address),
    ):
        pass

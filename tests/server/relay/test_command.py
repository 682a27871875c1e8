"""`ldp-server relay`: a process of its own, its settings, its checks, its status and its metrics."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
import trustme
from click.testing import CliRunner

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, StorageError
from ldp_client.protocol.v1 import collector_pb2 as pb
from ldp_client.protocol.v1 import collector_pb2_grpc, relay_pb2_grpc
from ldp_server.cli.main import cli as group
from ldp_server.relay.checks import examine_relay, look, room_line, standing_line
from ldp_server.relay.config import SAMPLE, HoldConfig, RelayConfig, load_relay_config, parse_relay_config
from ldp_server.relay.metrics import RelayMetrics
from ldp_server.relay.store import Standing
from ldp_server.testing import RelayProcess
from tests.server.helpers import cli, taken, wait_until
from tests.server.relay.helpers import Recorder, public_key, relayed, request, unit

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def collection():
    return relayed(5)


@pytest.fixture(scope="module")
def collector(collection, tmp_path_factory):
    """A recording collector on threads of its own, with mutual TLS."""
    folder = tmp_path_factory.mktemp("collector")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    for name in ("collector", "relay"):
        issued = authority.issue_cert("localhost", common_name=name)
        issued.private_key_pem.write_to_path(str(folder / f"{name}.key"))
        issued.cert_chain_pems[0].write_to_path(str(folder / f"{name}.pem"))
    recorder = Blocking(collection)
    server = grpc.server(ThreadPoolExecutor(4))
    collector_pb2_grpc.add_CollectorServicer_to_server(recorder, server)
    pair = [((folder / "collector.key").read_bytes(), (folder / "collector.pem").read_bytes())]
    credentials = grpc.ssl_server_credentials(pair, authority.cert_pem.bytes(), require_client_auth=True)
    recorder.target = f"localhost:{server.add_secure_port('localhost:0', credentials)}"
    recorder.folder = folder
    public_key(recorder, folder)
    server.start()
    yield recorder
    server.stop(None)


class Blocking(Recorder):
    """The recorder for a server of threads."""

    def __init__(self, *collections):
        self.arrived = None
        super().__init__(*collections)

    def GetCollection(self, asked, context):
        return pb.GetCollectionResponse(spec_bytes=self.specs[asked.collection_id])

    def ListCollections(self, asked, context):
        return pb.ListCollectionsResponse.FromString(self.publisher.response(asked.part))

    def Submit(self, sent, context):
        self.seen_of_callers.append(repr(context.auth_context()))
        self.batches[sent.batch_id] = sent
        return pb.SubmitResponse(batch_id=sent.batch_id, accepted=pb.Accepted(reports=1))


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def config(collector, tmp_path):
    folder = collector.folder
    text = f"""
        data = "held"
        [relay]
        operator = "Example Foundation"
        [tls]
        certificate = "{folder}/collector.pem"
        key = "{folder}/collector.key"
        [forward]
        collector = "{collector.target}"
        ca = "{folder}/ca.pem"
        certificate = "{folder}/relay.pem"
        key = "{folder}/relay.key"
        list_keys = ["{folder}/list.pub"]
        [hold]
        round = "1 second"
        [watch]
        metrics = "127.0.0.1:{free_port()}"
    """
    path = tmp_path / "relay.toml"
    path.write_text(text)
    return path


def invoked(*arguments):
    return CliRunner().invoke(group, ["relay", *arguments])


def port_of(config):
    return load_relay_config(config).watch.metrics.rpartition(":")[2]


def test_the_sample_has_every_setting_at_its_default():
    assert parse_relay_config(SAMPLE, Path()) == RelayConfig()
    settings = re.findall(r"^(\w+) = ", SAMPLE, re.MULTILINE)
    assert len(settings) == sum(
        1 if not hasattr(value, "__dataclass_fields__") else len(vars(value)) for value in vars(RelayConfig()).values()
    )
    assert invoked("config").output == SAMPLE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense = 1", "`ldp-server relay config` prints every setting"),
        ("[hold]\nround = 5", "hold.round"),
        ('[hold]\nround = "5"', "hold.round"),
        ("[hold]\nremember_rounds = -1", "hold.remember_rounds"),
        ('[forward]\ncollector = "https://example.org"', "host and port"),
        ('[forward]\ncertificate = "a.pem"', "forward.key"),
        ('[forward]\ncollections = ["abc"]', "64"),
        ('[forward]\ntokens = ["abc"]', "ID=BYTES"),
        ('[tls]\nkey = "a"', "tls.certificate"),
        ("[limits]\nheld_bytes = 0", "limits.held_bytes"),
        ("[admission]\nburst = -1.0", "admission.burst"),
        ('[admission]\ntrusted_proxies = ["x"]', "admission.trusted_proxies"),
        ('[relay]\nlisten = "nowhere"', "relay.listen"),
        ('[watch]\nlog_format = "x"', "watch.log_format"),
        ('[watch]\nlog_level = "x"', "watch.log_level"),
        ("data = [", "TOML"),
    ],
)
def test_a_wrong_setting_is_named_in_one_line(tmp_path, text, said):
    path = tmp_path / "relay.toml"
    path.write_text(text)
    with pytest.raises(InvalidSpec, match=re.escape(said)):
        load_relay_config(path)


@pytest.mark.long
def test_a_relay_from_start_to_ctrl_c_over_tls(config, collection, collector):
    with RelayProcess(config) as relay:
        credentials = grpc.ssl_channel_credentials((collector.folder / "ca.pem").read_bytes())
        port = relay.target.rpartition(":")[2]
        with grpc.secure_channel(f"localhost:{port}", credentials) as channel:
            stub = relay_pb2_grpc.RelayStub(channel)
            for tag in range(7):
                taken(stub.Submit(request(collection, unit(collection, tag)), timeout=300))
            wait_until(lambda: sum(len(part) for part in collector.units(collection)) >= 5)
        assert "relay" in collector.seen_of_callers[0]  # the certificate that it shows
        said = invoked("status", "--config", str(config), "--json")
        (line,) = [json.loads(one) for one in said.output.splitlines()]
        assert (line["id"], line["smallest_batch"], line["warning"]) == (collection.id.hex(), 5, False)
        checked = invoked("check", "--config", str(config))
        assert (checked.exit_code, "WRONG" in checked.output) == (0, False)
        assert "its list has 1 collections" in checked.output
        page = urllib.request.urlopen(f"http://127.0.0.1:{port_of(config)}/metrics", timeout=300).read().decode()
        assert "hearsay_relay_held_bytes" in page
        assert "process_resident_memory_bytes" in page
        assert urllib.request.urlopen(f"http://127.0.0.1:{port_of(config)}/healthz", timeout=300).status == 200
        relay.process.send_signal(signal.SIGINT)
        assert relay.process.wait(60) == 0
    log = config.with_suffix(".log").read_text()
    assert "Traceback" not in log
    assert "127.0.0.1:" not in log.replace(relay.target, "").replace(collector.target, "")
    assert "ipv4" not in log
    everything = b"".join(path.read_bytes() for path in (config.parent / "held").iterdir() if path.name != "lock")
    assert b"127.0.0.1" not in everything
    assert b"ipv4" not in everything


def verdicts(config, **more):
    return {one.what: one.verdict for one in examine_relay(config, **more)}


def test_checks_say_what_is_wrong(config, tmp_path):
    text = config.read_text()
    assert set(verdicts(config).values()) == {"ok"}
    config.write_text(re.sub(r"localhost:\d+", "localhost:1", text).replace("Example Foundation", ""))
    found = verdicts(config)
    assert (found["collection server"], found["operator"]) == ("wrong", "warning")
    assert "collection server" not in verdicts(config, connect=False)
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "relay.db").write_bytes(os.urandom(20_000))
    (tmp_path / "held").chmod(0o755)
    found = verdicts(config, connect=False)
    assert (found["relay.db"], found["permissions"]) == ("wrong", "warning")
    config.write_text(text.replace("list_keys", "# list_keys"))
    (only,) = (one for one in examine_relay(config) if one.verdict == "wrong")
    assert "forward.list_keys" in only.detail
    done = cli("relay", "check", "--config", str(config), "--json")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert [json.loads(one)["verdict"] for one in done.stdout.splitlines()] == ["ok", "wrong"]


def test_without_a_release_for_weeks_the_status_warns(config, collection):
    settings = load_relay_config(config)
    spec = collection.spec_bytes
    day = replace(settings, hold=HoldConfig(round="1 day"))
    assert standing_line(Standing(collection.id, spec, 5, 4, 0, 13), day).verdict == "ok"
    line = standing_line(Standing(collection.id, spec, 5, 4, 0, 14), day)
    assert line.verdict == "warning"
    assert "4 held" in line.detail
    assert "14 rounds of 1 day in a row" in line.detail
    assert "deleted if the window ends with fewer than 5" in line.detail


def test_what_else_the_status_warns_of(config, collection):
    """Batches that the collection server takes no more, a clock that was ahead, and a store that is nearly full."""
    settings, spec, now = load_relay_config(config), collection.spec_bytes, 10 * 86_400
    over = Collection.from_bytes(spec).closes + 7 * 86_400
    for moment, outgoing, newest, says in (
        (now, 4, 10, None),
        (over - 1, 4, None, None),
        (over + 1, 0, None, None),
        (over + 1, 4, None, "its window is over by a week"),
        (now - 60, 0, 10, None),
        (now - 61, 0, 10, "the clock was ahead when they came, or is behind now"),
    ):
        day = replace(settings, hold=HoldConfig(round="1 day"))
        line = standing_line(Standing(collection.id, spec, 5, 4, outgoing, 0, 100, newest), day, moment)
        assert line.verdict == ("ok" if says is None else "warning"), (moment, newest)
        assert says is None or says in line.detail
    assert [room_line(held, 1000).verdict for held in (0, 800, 801, 1000)] == ["ok", "ok", "warning", "warning"]


def test_a_directory_that_holds_nothing_is_said_in_one_line(config, tmp_path):
    with pytest.raises(StorageError, match="relay serve"):
        look(tmp_path / "none" / "relay.db")
    with pytest.raises(InvalidSpec, match="cannot read"):
        load_relay_config(tmp_path / "missing.toml")


def test_the_process_loads_no_numpy_and_nothing_that_counts():
    script = (
        "import sys; sys.argv = ['ldp-server', 'relay', 'config']\n"
        "from ldp_server.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "rooms = ('worker', 'oracles', 'answers', 'arrays', 'heavy_hitters', 'planning', 'tables', 'web', 'analyst')\n"
        "bad = [m for m in sys.modules if m == 'numpy' or any(m.startswith(f'ldp_server.{r}') for r in rooms)]\n"
        "sys.stderr.write(','.join(bad) or 'none')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
    )
    assert done.stderr == "none"


def test_every_counter_is_there_from_the_start():
    metrics = RelayMetrics()
    samples = [sample for metric in metrics.registry.collect() for sample in metric.samples]
    counters = {sample.name for sample in samples if sample.name.endswith("_total")}
    assert counters == {
        f"hearsay_{name}_total"
        for name in (
            "refused_batches", "busy", "ended_connections", "malformed", "storage_errors", "internal_errors",
            "relay_reports", "relay_duplicates", "relay_releases", "relay_released_reports", "relay_merged_reports",
            "relay_forwarded_reports", "relay_given_up_reports", "relay_forward_failures", "relay_list_failures",
        )
    }  # fmt: skip
    assert all(sample.value == 0 for sample in samples if sample.name in counters)

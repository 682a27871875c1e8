"""A witness: what it signs, what it never signs, its state, its command, and devices that rely on it."""

import asyncio
import hashlib
import io
import json
import signal
import sys
from asyncio.subprocess import PIPE
from contextlib import redirect_stdout

import pytest
import trustme
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ldp_client import Client, NotWitnessed, Policy, Sending
from ldp_client.cli import main as client_main
from ldp_client.errors import InvalidSpec, ListForked, PolicyRefused, StorageError, Unavailable
from ldp_client.protocol.v1 import collector_pb2
from ldp_client.trust.list_heads import Cosignature, ListHead, ListProof, seen_by
from ldp_client.trust.merkle import EMPTY_ROOT, Tree, root_of, verify_inclusion
from ldp_server.cli.main import cli, load
from ldp_server.config import PublishConfig
from ldp_server.service.admission.key_files import load_public_key, make_key
from ldp_server.testing import ServerProcess
from ldp_server.witness import ListWitness, read_state
from tests.client.operators import Operator
from tests.server.helpers import live, make_collection
from tests.server.service.admission.test_admission import secure, tls_files
from tests.server.web.conftest import Browser, site_for

IDS = [bytes([number]) * 32 for number in range(9)]
LIMITS = {"max_epsilon": "1", "budget": "2", "period": "30 days", "lifetime": "12"}


class Source:
    """A server's side in memory; `proof` may replace the consistency proof."""

    def __init__(self, operator):
        self.operator, self.ids, self.handed_in, self.asked = operator, IDS[:2], [], []
        self.proof, self.lies = None, {}

    def prove_list(self, size, collection_id, timeout):
        assert collection_id == b"" and timeout > 0
        self.asked.append(size)
        part = self.operator.sign(self.ids, **self.lies)
        tree = Tree()
        for one in self.ids:
            tree.append(one)
        proof = tree.consistency(size) if size <= len(tree) else []
        proof = proof if self.proof is None else self.proof
        return ListProof(part.list_bytes, part.signature, part.public_key, tuple(proof))

    def cosign(self, digest, cosignature, timeout):
        assert timeout > 0
        self.handed_in.append((digest, cosignature))


@pytest.fixture
def source():
    return Source(Operator())


@pytest.fixture
def key():
    return Ed25519PrivateKey.generate()


@pytest.fixture
def witness(source, key, tmp_path):
    return lambda: ListWitness(source, [source.operator.public], key, tmp_path / "state")


def test_it_signs_what_grows(witness, source, key, tmp_path):
    for size in (2, 2, 3, 8, 9):
        source.ids = IDS[:size]
        head = witness().look(5)  # a new one each time: all it knows is in its file
        assert head == ListHead(size, root_of(b"".join(source.ids)))
        digest, signature = source.handed_in[-1]
        signed = read_state(tmp_path / "state").signed
        assert signed.list_bytes == source.operator.sign(source.ids).list_bytes
        assert digest == hashlib.sha256(signed.list_bytes).digest()
        public = key.public_key().public_bytes_raw()
        assert seen_by(source.operator.public, signed.list_bytes, [signature], [public]) == {public}
    assert source.asked == [0, 2, 2, 3, 8]
    assert read_state(tmp_path / "state").head == head


@pytest.mark.parametrize(
    ("ids", "why"),
    [
        (IDS[:3], "went back"), (IDS[1:6], "two different"), (IDS[1:8], "cannot show"), ([], "went back"),
        ([*IDS[:4], IDS[5], IDS[4], IDS[6]], "cannot show"),
    ],
)  # fmt: skip
def test_another_history_is_never_signed(witness, source, tmp_path, ids, why):
    source.ids = IDS[:5]
    witness().look(5)
    before = (tmp_path / "state").read_bytes()
    source.ids = ids
    for _ in range(2):
        with pytest.raises(ListForked, match=why):
            witness().look(5)
    assert len(source.handed_in) == 1 and (tmp_path / "state").read_bytes() == before
    source.ids, source.lies = IDS[:5], {"next_key": bytes(32)}
    with pytest.raises(ListForked, match="two different"):
        witness().look(5)  # the same ids, and another next key
    source.ids, source.lies = IDS[:6], {}
    assert witness().look(5).size == 6, "an honest list goes on"


def test_bad_proofs_and_lists_are_never_signed(witness, source):
    witness().look(5)
    source.ids = IDS[:7]
    for source.proof in ([], [bytes(32)], [b""], [bytes(32)] * 1000):
        with pytest.raises(ListForked):
            witness().look(5)
    source.proof = None
    for source.lies in ({"root": b""}, {"root": bytes(31)}, {"serial": 100_001}, {"root": bytes(32)}):
        with pytest.raises(PolicyRefused):
            witness().look(5)
    source.lies, honest = {}, source.operator
    source.operator = Operator()
    with pytest.raises(PolicyRefused, match="does not trust"):
        ListWitness(source, [honest.public], Ed25519PrivateKey.generate(), witness()._file).look(5)
    assert len(source.handed_in) == 1


def test_the_head_is_on_the_disk_before_its_signature_leaves(witness, source, tmp_path):
    def cut_off(*_):
        raise Unavailable("the connection broke")

    source.cosign = cut_off
    with pytest.raises(Unavailable):
        witness().look(5)
    assert read_state(tmp_path / "state").head.size == 2


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]", b"\xff", b'{"form": "hearsay-witness-1"}', b"[" * 5000])
def test_a_damaged_state_signs_nothing(witness, source, tmp_path, damage):
    (tmp_path / "state").write_bytes(damage)
    with pytest.raises(StorageError, match="nothing was signed"):
        witness().look(5)
    assert source.handed_in == []


@pytest.mark.parametrize("name", ["size", "root", "list_bytes"])
def test_a_changed_state_signs_nothing(witness, source, tmp_path, name):
    witness().look(5)
    data = json.loads((tmp_path / "state").read_text())
    data[name] = 1 if name == "size" else "00" * 32
    (tmp_path / "state").write_text(json.dumps(data))
    with pytest.raises(StorageError, match="damaged"):
        witness().look(5)
    assert len(source.handed_in) == 1


def test_a_state_that_cannot_be_written_signs_nothing(source, key, tmp_path):
    with pytest.raises(StorageError, match="nothing was signed"):
        ListWitness(source, [source.operator.public], key, tmp_path / "gone" / "state").look(5)
    assert source.handed_in == []
    assert read_state(tmp_path / "none") == (ListHead(0, EMPTY_ROOT), None)


# -- with a real server, by the commands


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A server that signs its list and takes signatures of one witness."""
    folder = tmp_path_factory.mktemp("witness")
    for name in ("list.key", "witness.key"):
        make_key(folder / name)
    publish = PublishConfig(signing_key=folder / "list.key", witnesses=(folder / "witness.key.pub",))
    lines = f'[publish]\nsigning_key = "{publish.signing_key}"\nwitnesses = ["{publish.witnesses[0]}"]\n'
    (folder / "server.toml").write_text(lines)
    with ServerProcess(folder / "data", "--config", str(folder / "server.toml")) as server:
        yield server, folder


def public_key(file):
    return load_public_key(file).public_bytes_raw()


def command(folder, server, *more):
    load()
    key = public_key(folder / "list.key.pub").hex()
    options = ["--follow", server.target, "--list-key", key, "--key", folder / "witness.key", "--state", folder / "s"]
    arguments = ["witness", *map(str, options), "--plaintext", "--every", "once", *more]
    return cli.main(arguments, standalone_mode=False)


@pytest.fixture(scope="module")
def followed(world, tmp_path_factory):
    """A device that relies on the witness, after two lists: its storage, and the heads that the witness printed."""
    server, folder = world
    storage, printed = tmp_path_factory.mktemp("device") / "ldp", []
    list_key, witness_key = public_key(folder / "list.key.pub"), public_key(folder / "witness.key.pub")
    policy = Policy(**LIMITS, list_keys=[list_key], witnesses=[witness_key])
    sending = Sending(background=False)
    with (
        server.analyst() as analyst,
        Client(server.target, storage=storage, policy=policy, tls=False, sending=sending) as device,
    ):
        for number, name in enumerate(("one", "two"), 1):
            analyst.create(make_collection(name))
            with pytest.raises(NotWitnessed, match="0 of 1 witnesses"):
                device.refresh()
            with redirect_stdout(io.StringIO()) as out:
                command(folder, server, "--json")
            printed.append(json.loads(out.getvalue()))
            assert device.refresh() == number
            head = ListHead(printed[-1]["size"], bytes.fromhex(printed[-1]["root"]))
            assert device.list_head() == head and device.check_list(*head)
        assert device.listed() == (make_collection("one").id, make_collection("two").id)
    return storage, printed


def test_the_command_prints_what_it_signed(world, followed, capsys):
    server, folder = world
    command(folder, server)
    assert capsys.readouterr().out == f"signed: 2 {followed[1][1]['root']}\n"


@pytest.mark.parametrize("held", [False, True], ids=["asking the server", "with the held list"])
def test_people_compare_heads(world, followed, capsys, held):
    server, folder = world
    storage, (one, two) = followed
    options = ["--server", server.target, "--plaintext", "--list-key", public_key(folder / "list.key.pub").hex()]
    if held:
        limits = ["--max-epsilon", "1", "--budget", "2", "--period", "1 day", "--lifetime", "9"]
        options = ["--storage", str(storage), *limits]
    assert client_main(["list", "head", *options]) == 0
    assert capsys.readouterr().out == f"2 {two['root']}\n"
    assert client_main(["list", "head", *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == two
    assert client_main(["list", "check", "1", one["root"], *options]) == 0
    assert "One list: the first 1 of its 2 collections" in capsys.readouterr().out
    assert client_main(["list", "check", "2", two["root"], *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"fits": True, "held": 2}
    for size, root, code in (
        (2, "11" * 32, 1),
        (1, two["root"], 1),
        (3, "11" * 32, 4),
        (2, "11", 2),
        (-1, "11" * 32, 2),
    ):
        assert client_main(["list", "check", *options, "--", str(size), root]) == code
        assert capsys.readouterr().err.count("\n") == 1


def test_the_command_with_wrong_options(world, tmp_path):
    server, folder = world
    for more in (["--list-key", "zz"], ["--every", "soon"], ["--key", tmp_path / "none"], ["--follow", "nowhere"]):
        with pytest.raises(InvalidSpec):
            command(folder, server, *map(str, more))


@pytest.mark.long
async def test_the_command_follows_over_tls_until_it_is_told_to_end(tmp_path):
    """It prints each new head, and goes on while the server is away. A restarted server has its signatures."""
    for name in ("list.key", "witness.key"):
        make_key(tmp_path / name)
    list_key, witness_key = (public_key(tmp_path / f"{name}.key.pub") for name in ("list", "witness"))
    parts = {
        "tls": tls_files(tmp_path, authority := trustme.CA()),
        "channel": secure(authority),
        "publish": PublishConfig(signing_key=tmp_path / "list.key", witnesses=(tmp_path / "witness.key.pub",)),
    }
    async with live(tmp_path / "d", **parts) as server:
        await server.create(make_collection("one"))
        options = {
            "follow": f"localhost:{server.server.port}",
            "list-key": list_key.hex(),
            "key": tmp_path / "witness.key",
        }
        options |= {"state": tmp_path / "s", "ca": tmp_path / "ca.pem", "every": "1 s"}
        more = [f"--{name}={value}" for name, value in options.items()]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "ldp_server", "witness", *more, "--json", stdout=PIPE, stderr=PIPE
        )
        for size, text in ((1, "two"), (2, "three")):
            assert json.loads(await process.stdout.readline())["size"] == size
            await server.create(make_collection(text))
        head = json.loads(await process.stdout.readline())
    assert b"not now" in await process.stderr.readline()  # the server is away
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0
    assert b"Traceback" not in await process.stderr.read()
    for damage in (None, b"", b"{}", b'{"form": "hearsay-cosignatures-1"}', b"[" * 5000):
        if damage is not None:
            (tmp_path / "d" / "cosignatures.json").write_bytes(damage)
        async with live(tmp_path / "d", **parts) as server:
            found = await server.collector.ListCollections(collector_pb2.ListCollectionsRequest())
            signed = found.signed_list
            given = [Cosignature(one.public_key, one.signature) for one in found.cosignatures]
            seen = seen_by(list_key, signed.list_bytes, given, [witness_key])
            assert seen == ({witness_key} if damage is None else set())
            assert collector_pb2.SignedListBody.FromString(signed.list_bytes).root.hex() == head["root"]


async def test_the_public_pages_have_the_head_of_the_list_and_a_proof(world, followed):
    """What a page says fits the list that devices are sent, and shows anybody that the question is on it."""
    server, folder = world
    (_, (_, two)), one = followed, make_collection("one")
    site = site_for(server)
    site.public = True
    browser = Browser(site, address="192.0.2.1")
    page = await browser.get(f"/public/{one.id.hex()[:16]}")
    data = (await browser.get(f"/public/{one.id.hex()[:16]}/question.json")).json()
    whole = (await browser.get("/public/list.json")).json()
    await browser.http.aclose()
    site.close()
    key = public_key(folder / "list.key.pub").hex()
    assert whole["list"] == {"size": two["size"], "root": two["root"], "key": key}
    assert data["list"] == whole["list"] | {"index": 0, "inclusion": data["list"]["inclusion"]}
    proof = [bytes.fromhex(one) for one in data["list"]["inclusion"]]
    assert verify_inclusion(one.id, 0, two["size"], bytes.fromhex(two["root"]), proof)
    assert two["root"] in page.text and key in page.text and "number 1 on the list" in page.text

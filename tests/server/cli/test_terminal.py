"""What people see: whole tables, plain numbers, help for everything, one line for every error, a clean Ctrl-C."""

import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import click
import pytest

from ldp_client.errors import Cancelled, InvalidSpec, LdpError, ServerRefused, StorageError, Unavailable
from ldp_server.cli import show
from ldp_server.cli.main import VARIABLES, exit_code, load
from ldp_server.cli.main import cli as group
from ldp_server.cli.show import item_text, moment, whole
from tests.server.helpers import ROOT, ServerProcess, cli, make_collection

LONG = "Which of the many long words that people use when they are asked such things do you use most, and why?"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ServerProcess(tmp_path_factory.mktemp("terminal") / "d") as server:
        server.create(make_collection(LONG))
        yield server


def in_a_terminal(*arguments, columns=40, data=None):
    """Run `ldp-server` with a terminal as its output; return what the terminal showed and the exit code."""
    command = [sys.executable, "-m", "ldp_server", *arguments, *(["--data", str(data)] if data else [])]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": str(columns), "TERM": "xterm", "NO_COLOR": "1"}
    ours, theirs = pty.openpty()
    shown = []

    def read():
        while True:
            try:
                text = os.read(ours, 65536)
            except OSError:
                return
            if not text:
                return
            shown.append(text)

    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        reader = threading.Thread(target=read)
        reader.start()
        code = process.wait(60)
    reader.join(10)
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", b"".join(shown).decode()), code


def letters(text):
    return re.sub(r"[\s│┃]", "", text)


# -- tables


def test_piped_tables_are_as_wide_as_they_need_to_be(server):
    shown = cli("collection", "list", data=server.data)
    assert LONG in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) > 150


@pytest.mark.long
def test_a_narrow_terminal_wraps_and_cuts_nothing(server):
    shown, code = in_a_terminal("collection", "show", make_collection(LONG).id.hex(), data=server.data)
    assert code == 0
    assert make_collection(LONG).id.hex() in letters(shown)
    assert "…" not in shown
    shown, _ = in_a_terminal("collection", "list", columns=60, data=server.data)
    for word in LONG.rstrip("?").split():
        assert all(character in shown for character in word)
    assert "…" not in shown


def test_none_is_shown_as_none(server):
    shown = cli("estimate", make_collection(LONG).id.hex(), "--all", data=server.data).stdout
    assert re.search(r"│ none +│", shown)
    assert "True" not in shown


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (None, "none"), ("none", "'none'"), ("", "''"), ("tea", "tea"), ("a\nb", "'a\\nb'"), ("茶 🍵", "茶 🍵"),
        (7, "7"), (-7, "-7"), (b"\xff", "b'\\xff'"), (frozenset({"b", "a"}), "a + b"), (frozenset(), "no attribute"),
    ],
)  # fmt: skip
def test_items(item, text):
    assert item_text(item) == text


def test_numbers_and_times():
    assert whole(1234567.8901) == "1,234,568"
    assert moment(0) == moment(None) == "-"
    assert moment(1_800_000_000) == "2027-01-15 08:00 UTC"
    assert moment(1 << 60).endswith(" s")


def test_markup_in_a_name_is_text(server):
    collection = make_collection("[bold]How many?[/bold]")
    server.create(collection)
    assert "[bold]How many?[/bold]" in cli("collection", "list", data=server.data).stdout
    assert "[bold]How many?[/bold]" in cli("estimate", collection.id.hex(), data=server.data).stdout


def test_long_lists_say_that_they_go_on(monkeypatch, server, tmp_path):
    collection = make_collection("Long?", count=1500, q=3, t=7)
    server.create(collection)
    shown = cli("estimate", collection.id.hex(), "--all", data=server.data).stdout
    assert "501 more are not shown: --json prints all" in shown


# -- help


def commands():
    load()
    for name, command in group.commands.items():
        inner = getattr(command, "commands", None)
        if inner is None:
            yield name, command
        else:
            yield from ((f"{name} {second}", sub) for second, sub in inner.items())


@pytest.mark.parametrize(
    ("name", "command"), list(commands()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_option_is_explained(name, command):
    if name == "demo":  # its own program, tested below
        return
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, (name, parameter.name)
            assert parameter.help.rstrip().endswith((".", "]")), (name, parameter.help)
    flags = {flag for parameter in command.params for flag in parameter.opts}
    print_a_file = {"config", "relay config", "token issuer-config", "watch alerts", "watch dashboard"}
    assert "--json" in flags or name in print_a_file


def test_the_help_of_the_whole():
    shown = cli("--help").stdout
    for variable in VARIABLES:
        assert variable in shown
    for name, _ in commands():
        assert name.split()[0] in shown
    assert "..." not in shown.replace("COMMAND [ARGS]...", "")
    assert "130  interrupted" in shown


def test_every_variable_is_read_by_an_option():
    read = {parameter.envvar for _, command in commands() for parameter in command.params}
    assert {name for name in VARIABLES if name.startswith("LDP_")} == read - {None}


def test_the_environment_stands_for_options(server, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LDP_SERVER_DATA": str(server.data)}
    command = [sys.executable, "-m", "ldp_server", "collection", "list"]
    assert LONG[:20] in subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    environment |= {"LDP_SERVER": "127.0.0.1:1"}
    assert subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 4


def test_the_demo_explains_its_options():
    shown = cli("demo", "--help").stdout
    for option in ("--users", "--epsilon", "--seed", "--json"):
        assert option in shown


# -- errors


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidSpec("x"), 2), (ServerRefused("NOT_FOUND", "x"), 1), (Unavailable("x"), 4), (StorageError("x"), 3),
        (Cancelled("x"), 130), (LdpError("x"), 1),
    ],
)  # fmt: skip
def test_exit_codes_of_errors(error, code):
    assert exit_code(error) == code


HIDE = """
import sys
for name in {hidden!r}:
    sys.modules[name] = None
sys.argv = {argv!r}
from {module} import main
main()
"""


@pytest.mark.parametrize("program", ["ldp_server.cli", "simulator.cli"])
@pytest.mark.parametrize("hidden", [["numpy"], ["click"], ["rich"], ["numpy", "click", "rich", "prometheus_client"]])
@pytest.mark.thinned(3)
def test_without_the_servers_libraries_it_says_what_to_install(program, hidden):
    argv = ["program", "frequencies"] if program == "simulator.cli" else ["program", "collection", "list"]
    script = HIDE.format(hidden=hidden, argv=argv, module=program)
    found = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    assert "pip install 'hearsay[server]'" in found.stderr


def test_another_missing_module_is_a_defect_and_looks_like_one():
    script = HIDE.format(hidden=["ldp_server.oracles"], argv=["program"], module="ldp_server.cli")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "Traceback" in found.stderr


def test_with_tls_local_commands_find_the_certificate(tmp_path):
    import trustme

    issued = trustme.CA().issue_cert("stats.example.org")
    certificate, key = tmp_path / "server.pem", tmp_path / "server.key"
    certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(key)
    (tmp_path / "server.toml").write_text('[tls]\ncertificate = "server.pem"\nkey = "server.key"\n')
    with ServerProcess(tmp_path / "d", "--config", str(tmp_path / "server.toml")) as server:
        assert cli("collection", "list", data=server.data).returncode == 0
        assert cli("collection", "list", "--server", server.target, data=server.data).returncode == 0  # the same one
        found = cli("collection", "list", "--server", server.target, data=tmp_path)
        assert found.returncode == 4
        assert found.stderr.count("\n") == 1
        assert "speaks TLS: pass the certificate of its authority (--ca FILE" in found.stderr
        assert "Socket closed" not in found.stderr
    found = cli("collection", "list", data=server.data)
    assert found.returncode == 4
    assert "start one (ldp-server serve" in found.stderr


def test_only_one_of_certificate_and_key(server):
    found = cli("collection", "list", "--cert", "c.pem", data=server.data)
    assert found.returncode == 2
    assert "give both --cert and --key" in found.stderr


# -- waiting


@pytest.mark.parametrize("arguments", [["collection", "list"], ["estimate", "ff" * 32], ["heavy-hitters", "ff" * 32]])
@pytest.mark.thinned(1)
def test_ctrl_c_is_clean(arguments, tmp_path):
    """While a server takes its time."""
    (tmp_path / "token").write_text("hearsay_x")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = f"127.0.0.1:{silent.getsockname()[1]}"
        command = [sys.executable, "-m", "ldp_server", *arguments, "--server", target]
        with subprocess.Popen(
            [*command, "--token-file", str(tmp_path / "token")], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        ) as process:  # fmt: skip
            silent.settimeout(30)
            connection, _ = silent.accept()
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=20)
            connection.close()
    assert process.returncode == 130
    assert "Traceback" not in errors


def test_a_reader_who_leaves_is_no_error(server):
    command = f"{sys.executable} -m ldp_server config | head -1"
    found = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert found.stderr == ""


def test_a_bar_where_somebody_looks(tmp_path):
    from ldp_server.service.admission.key_files import make_key

    make_key(tmp_path / "k")
    (tmp_path / "c.ldp").write_text(make_collection().to_toml())
    arguments = ["token", "issue-linkable", str(tmp_path / "c.ldp"), "--key", str(tmp_path / "k"), "--count", "20000"]
    shown, code = in_a_terminal(*arguments, "--out", str(tmp_path / "t"), columns=100)
    assert code == 0
    assert re.search(r"signing: [0-9,]+ of 20,000", shown)
    piped = cli(*arguments, "--out", str(tmp_path / "u"))
    assert piped.stderr == ""


def test_progress_is_silent_without_a_terminal(capsys):
    with show.busy("work") as tell, show.progress_bar("work") as progress:
        tell("more")
        progress("more", 0.5)
    assert capsys.readouterr() == ("", "")

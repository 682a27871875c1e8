"""Whatever is wrong with a server's address, TLS or token: the right error, and a text that says what to do."""

import contextlib
import socket
import threading
import time

import grpc
import pytest
import trustme

from ldp_client.errors import InvalidSpec, ServerRefused, StorageError, Unavailable
from ldp_server.analyst import Analyst, RoleNeeded, Timeouts, Tls, TokenRefused
from ldp_server.store import AccessFile
from tests.server.helpers import ServerProcess, make_collection

QUICK = Timeouts(call=5.0, long=5.0)


class Authority:
    """A certificate authority, with files."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.authority = trustme.CA()
        self.ca = str(folder / "ca.pem")
        self.authority.cert_pem.write_to_path(self.ca)

    def issue(self, *names):
        issued = self.authority.issue_cert(*names, common_name=names[0])
        certificate, key = self.folder / f"{names[0]}.pem", self.folder / f"{names[0]}.key"
        certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        issued.private_key_pem.write_to_path(key)
        return str(certificate), str(key)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls") / "ours")


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls") / "theirs")


@contextlib.contextmanager
def serving(folder, settings):
    file = folder / "server.toml"
    file.write_text(f'data = "d"\n{settings}')
    with ServerProcess(folder / "d", "--config", str(file)) as server:
        yield server


def tls_settings(certificate, key):
    return f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n'


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("plain"), "") as server:
        yield server


@pytest.fixture(scope="module")
def secure(tmp_path_factory, authority):
    with serving(tmp_path_factory.mktemp("secure"), tls_settings(*authority.issue("localhost"))) as server:
        yield server


@pytest.fixture(scope="module")
def mutual(tmp_path_factory, authority):
    more = f'[collector]\nclient_ca = "{authority.ca}"\n'
    with serving(tmp_path_factory.mktemp("mutual"), tls_settings(*authority.issue("localhost")) + more) as server:
        yield server


def by_name(server):
    return f"localhost:{server.target.rpartition(':')[2]}"


def token(server):
    return server.data / "local.token"


def fails(kind, match, target, **options):
    with Analyst(target, timeouts=QUICK, **options) as analyst, pytest.raises(kind, match=match) as caught:
        analyst.status()
    assert "\n" not in str(caught.value)
    return caught.value


# -- no server


def test_nobody_listens(tmp_path):
    fails(Unavailable, "nothing listens on 127.0.0.1:1: check the address", "127.0.0.1:1")


def test_an_unknown_name():
    fails(Unavailable, "the name no-such-host.invalid is not known", "no-such-host.invalid:443")


def test_a_server_that_says_nothing():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = f"127.0.0.1:{silent.getsockname()[1]}"
        started = time.monotonic()
        with (
            Analyst(target, timeouts=Timeouts(call=0.5)) as analyst,
            pytest.raises(Unavailable, match="did not answer"),
        ):
            analyst.status()
        assert time.monotonic() - started < 10


def test_something_else_than_a_server():
    def answer(listening):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer, args=(listening,), daemon=True)
        thread.start()
        fails(
            Unavailable,
            "does not answer as a collection server does: check the address",
            f"127.0.0.1:{listening.getsockname()[1]}",
        )
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(5)


@pytest.mark.parametrize(
    "target", ["", "stats.example.org", "https://stats.example.org:443", "host:", ":1", "a b:1", "host:x", "me@host:1"]
)
def test_what_is_no_address(target):
    with pytest.raises(InvalidSpec, match="HOST:PORT"):
        Analyst(target)


def test_no_server_runs_on_the_data_directory(tmp_path):
    with pytest.raises(Unavailable, match=r"start one .ldp-server serve"):
        Analyst.local(tmp_path)


def test_an_address_file_that_is_damaged(tmp_path):
    (tmp_path / "address").write_text("nonsense")
    with pytest.raises(StorageError, match="start it again"):
        Analyst.local(tmp_path)


def test_a_server_that_dies_during_a_call(tmp_path):
    with ServerProcess(tmp_path / "d") as server, server.analyst() as analyst:
        analyst.create(make_collection())
        server.kill()
        with pytest.raises(Unavailable, match=r"nothing listens|did not answer"):
            analyst.status()


# -- TLS


def test_tls_and_plain_text_that_fit(plain, secure, mutual, authority):
    certificate, key = authority.issue("operator")
    for target, tls in (
        (plain.target, None),
        (by_name(secure), Tls(authority.ca)),
        (by_name(mutual), Tls(authority.ca, certificate, key)),
    ):
        server = next(s for s in (plain, secure, mutual) if target.endswith(s.target.rpartition(":")[2]))
        with Analyst(target, token=token(server), tls=tls) as analyst:
            assert analyst.status().version


def test_no_tls_where_the_server_speaks_it(secure):
    fails(Unavailable, "speaks TLS: pass the certificate of its authority .--ca FILE", secure.target)


def test_no_tls_where_the_server_wants_a_client_certificate_too(mutual):
    fails(Unavailable, "speaks TLS", mutual.target)


def test_tls_where_the_server_speaks_none(plain, authority):
    fails(Unavailable, "does not speak TLS: leave out --ca", plain.target, tls=Tls(authority.ca))


def test_another_authority(secure, other):
    error = fails(Unavailable, "is not accepted", by_name(secure), tls=Tls(other.ca))
    assert "unable to get local issuer certificate" in str(error)


def test_the_public_authorities(secure):
    fails(Unavailable, "is not accepted", by_name(secure), tls=Tls())


def test_another_name(secure, authority):
    error = fails(Unavailable, "by a name that its certificate has", secure.target, tls=Tls(authority.ca))
    assert "127.0.0.1" in str(error)


def test_no_client_certificate(mutual, authority):
    fails(Unavailable, "asks for a client certificate: pass one .--cert FILE", by_name(mutual), tls=Tls(authority.ca))


def test_a_client_certificate_of_another_authority(mutual, authority, other):
    certificate, key = other.issue("stranger")
    tls = Tls(authority.ca, certificate, key)
    fails(Unavailable, "does not accept this client certificate", by_name(mutual), tls=tls)


def test_tls_files_that_cannot_be_read(secure):
    fails(InvalidSpec, "cannot read the authority's certificate /nowhere", by_name(secure), tls=Tls("/nowhere"))
    with pytest.raises(InvalidSpec):
        Tls(certificate="alone")


def test_plain_text_is_spoken_to_this_machine_alone(monkeypatch):
    """A token never travels unencrypted."""

    def refuse(*_):
        raise AssertionError("plain text")

    monkeypatch.setattr(grpc, "insecure_channel", refuse)
    with Analyst("no-such-host.invalid:7900", token="t", timeouts=QUICK) as analyst, pytest.raises(Unavailable):
        analyst.status()
    with Analyst("127.0.0.1:7900") as analyst, pytest.raises(AssertionError, match="plain text"):
        analyst.status()


# -- the server of this machine


def test_the_local_server_s_certificate_is_found(secure):
    with Analyst.local(secure.data) as analyst:
        assert analyst.status().version


def test_a_local_server_with_another_certificate_is_not_believed(secure, other, tmp_path):
    """The file says which certificate to expect: whoever listens there now must have it."""
    from ldp_server.local_server import LocalServer
    from ldp_server.store import DataDirectory

    certificate, _ = other.issue("localhost")
    LocalServer(secure.target, certificate).write(DataDirectory(tmp_path))
    with Analyst.local(tmp_path, timeouts=QUICK) as analyst, pytest.raises(Unavailable):
        analyst.status()


def test_a_local_server_that_asks_for_a_client_certificate(mutual, authority):
    with pytest.raises(InvalidSpec, match="asks for a client certificate: pass one"):
        Analyst.local(mutual.data)
    certificate, key = authority.issue("operator")
    with Analyst.local(mutual.data, tls=Tls(certificate=certificate, key=key)) as analyst:
        assert analyst.status().version


def test_a_local_token_stays_on_this_machine(plain):
    assert Analyst.reach(plain.target, plain.data)._connection._metadata
    port = int(plain.target.rpartition(":")[2])
    for elsewhere in ("stats.example.org:443", f"127.0.0.1:{port + 1}", f"[::1]:{port}", f"127.0.0.2:{port}"):
        assert not Analyst.reach(elsewhere, plain.data)._connection._metadata


def test_a_token_s_file_may_be_renewed(plain, tmp_path):
    access = AccessFile(plain.data / "access.db", time.time)
    file = tmp_path / "carol.token"
    file.write_text(access.create("carol"))
    with Analyst(plain.target, token=file) as analyst:
        analyst.status()
        access.revoke("carol")
        with pytest.raises(TokenRefused):
            analyst.status()
        file.write_text(access.create("carol"))
        analyst.status()
        file.unlink()  # while it is replaced there may be none: the last one goes on
        analyst.status()
    access.close()


def test_a_role_that_does_not_allow_a_call(plain):
    access = AccessFile(plain.data / "access.db", time.time)
    with Analyst(plain.target, token=access.create("dora", "ask")) as analyst:
        with pytest.raises(RoleNeeded, match="needs the role create, and this token has the role ask") as error:
            analyst.create(make_collection("by dora"))
        assert error.value.reason == "PERMISSION_DENIED"
        assert analyst.collections() is not None
    access.close()


# -- tokens


def test_no_token(plain):
    error = fails(ServerRefused, "does not know who calls: give an analyst token .--token-file", plain.target)
    assert error.reason == "UNAUTHENTICATED"


def test_a_wrong_or_revoked_token(plain, tmp_path):
    access = AccessFile(plain.data / "access.db", time.time)
    secret = access.create("alice")
    with Analyst(plain.target, token=secret) as analyst:
        analyst.status()
        access.revoke("alice")
        with pytest.raises(TokenRefused, match=r"this token was revoked on 20.* make a new one with `ldp-server token"):
            analyst.status()
    access.close()
    fails(ServerRefused, "does not accept this token", plain.target, token="hearsay_wrong")


def test_a_token_s_file(plain, tmp_path):
    with Analyst(plain.target, token=token(plain)) as analyst:
        analyst.status()
    with pytest.raises(InvalidSpec, match="cannot read the token file"):
        Analyst(plain.target, token=tmp_path / "none")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(InvalidSpec, match="is empty"):
        Analyst(plain.target, token=tmp_path / "empty")
    with pytest.raises(InvalidSpec, match="no analyst token"):
        Analyst(plain.target, token="two\nlines")


def test_the_port_for_apps_takes_no_operators_calls(tmp_path):
    with serving(tmp_path, '[analyst]\nlisten = "127.0.0.1:0"\n') as server:
        assert server.target != server.analyst_target
        error = fails(ServerRefused, "use the address of analyst.listen", server.target, token=token(server))
        assert error.reason == "UNIMPLEMENTED"
        with server.analyst() as analyst:
            analyst.status()


# -- the environment


def test_from_the_environment(plain, secure, authority):
    found = Analyst.from_environment({"LDP_SERVER_DATA": str(plain.data)})
    assert found.target == plain.target
    assert found.status().version
    variables = {
        "LDP_SERVER": by_name(secure),
        "LDP_SERVER_TOKEN_FILE": str(token(secure)),
        "LDP_SERVER_CA": authority.ca,
    }
    with Analyst.from_environment(variables) as analyst:
        assert analyst.status().version
    with pytest.raises(Unavailable, match="hearsay-data"):
        Analyst.from_environment({})

"""Checks an issuer's configuration, its keys and secrets, and the file of its counts. Nothing is changed."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from ldp_client.errors import LdpError
from ldp_client.sending.target import is_loopback_host
from ldp_server.config import split_address
from ldp_server.diagnosis import Diagnosis, of_certificates, of_folder
from ldp_server.issuer.accounts import look_at_counts
from ldp_server.issuer.settings import IssuerConfig, load_settings
from ldp_server.issuer.signing import KeyRing, read_secret
from ldp_server.service.tls import TlsFiles
from ldp_server.store.directory import is_held
from ldp_server.store.wal import refuse_damaged

__all__ = ["examine_issuer"]

_LITTLE = 1 << 30


def examine_issuer(path: Path) -> Iterator[Diagnosis]:
    """Make all checks, in order."""
    try:
        config = load_settings(path)
        config.require()
        yield Diagnosis("configuration", "ok", "every setting is known and of the right kind")
        yield _keys(config)
        for file in config.secrets:
            read_secret(file)
        yield Diagnosis("secrets", "ok", f"{len(config.secrets)} read")
        if config.tls.certificate is not None:
            TlsFiles(config.tls, config.client_ca)
            yield Diagnosis("TLS files", "ok", "the key fits the certificate")
    except LdpError as error:
        yield Diagnosis("configuration", "wrong", str(error))
        return
    yield from of_certificates("certificate", config.tls.certificate, time.time())
    if config.tls.certificate is not None and config.client_ca is None and not is_loopback_host(_host(config)):
        yield Diagnosis("callers", "warning", "client_ca is empty: whoever learns a secret can call from anywhere")
    yield from _directory(config)


def _host(config: IssuerConfig) -> str:
    return split_address(config.listen, "listen")[0]


def _keys(config: IssuerConfig) -> Diagnosis:
    """Sign something with each key. Issuers' keys have no date: they end when apps and servers no longer name them."""
    ring = KeyRing.load(config.keys)
    for number in range(len(ring.public)):
        ring.try_out(number)
    ids = ", ".join(key.id.hex()[:12] for key in ring.public)
    return Diagnosis("keys", "ok", f"{ids}: each signs; they have no date and are replaced by hand")


def _directory(config: IssuerConfig) -> Iterator[Diagnosis]:
    file = config.data / "issued.db"
    if not config.data.is_dir():
        yield Diagnosis("data directory", "ok", f"{config.data} holds nothing yet")
        return
    yield from of_folder(config.data, _LITTLE)
    if not file.is_file():
        yield Diagnosis("counts", "ok", "nothing was signed yet")
        return
    try:
        if not is_held(config.data / "lock"):
            refuse_damaged(file)
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
            issued, newest = look_at_counts(db, file)
    except (LdpError, sqlite3.Error) as error:
        yield Diagnosis("counts", "wrong", str(error))
        return
    present = int(time.time() // config.period_seconds)
    if newest is not None and newest > present:
        detail = (
            "there are counts of a period that has not begun: the clock was ahead, is behind, or period was changed"
        )
        yield Diagnosis("clock", "warning", detail)
    yield Diagnosis("counts", "ok", f"{issued} tokens in the last two periods, its structure is sound")

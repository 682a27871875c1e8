"""Checks a relay's configuration, its files, its data directory and its way to the collection server.

Nothing is changed. How the collections stand is read from relay.db, also beside a running relay.
"""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from ldp_client.collection import Collection
from ldp_client.durations import format_duration
from ldp_client.errors import LdpError
from ldp_client.sending.grpc_transport import GrpcTransport
from ldp_client.trust.signed_list import verify_head
from ldp_server.diagnosis import Diagnosis
from ldp_server.relay.assemble import RelayDirectory
from ldp_server.relay.config import RelayConfig, check_use, load_relay_config
from ldp_server.relay.store import Standing, standings
from ldp_server.relay.store.schema import open_relay_log
from ldp_server.service.admission.key_files import load_public_key
from ldp_server.service.tls import TlsFiles
from ldp_server.store.errors import StorageError, translated

__all__ = ["examine_relay", "look", "standing_line"]

_LITTLE = 1 << 30
_SECONDS = 10.0
_LONG = 14 * 86_400
"""Rounds without a release for so long are worth a warning."""


def examine_relay(path: Path, *, connect: bool = True) -> Iterator[Diagnosis]:
    """Make all checks, in order; `connect` asks the collection server for its list."""
    try:
        config = load_relay_config(path)
        yield Diagnosis("configuration", "ok", "every setting is known and of the right kind")
        check_use(config)
        if config.tls.certificate is not None:
            TlsFiles(config.tls, None)
            yield Diagnosis("TLS files", "ok", "the key fits the certificate")
        keys = [load_public_key(one).public_bytes_raw() for one in config.forward.list_keys]
    except LdpError as error:
        yield Diagnosis("configuration", "wrong", str(error))
        return
    if not config.relay.operator:
        yield Diagnosis("operator", "warning", "relay.operator is empty: apps cannot say who runs this relay")
    if connect:
        yield _collector(config, keys)
    yield from _directory(config)


def _collector(config: RelayConfig, keys: list[bytes]) -> Diagnosis:
    what = "collection server"
    try:
        with closing(GrpcTransport(config.forward.collector, tls=config.forward.tls())) as transport:
            if not keys:
                transport.get_collection(bytes.fromhex(config.forward.collections[0]), _SECONDS)
                return Diagnosis(what, "ok", "it answers")
            part = transport.list_collections(0, _SECONDS)
        if not part.list_bytes:
            return Diagnosis(what, "wrong", "it has no signed list: its operator sets publish.signing_key")
        head = verify_head(part.list_bytes, part.signature, part.public_key, keys=keys, previous=None)
    except LdpError as error:
        return Diagnosis(what, "wrong", str(error))
    return Diagnosis(what, "ok", f"its list has {head.serial} collections, signed by a key of the configuration")


def _directory(config: RelayConfig) -> Iterator[Diagnosis]:
    directory = RelayDirectory(config)
    if not directory.log.is_file():
        yield Diagnosis("data directory", "ok", f"{directory.root} holds nothing yet")
        return
    mode = stat.S_IMODE(directory.root.stat().st_mode)
    yield Diagnosis("permissions", "warning" if mode & 0o077 else "ok", f"mode {mode:04o}, 0700 is expected")
    free = shutil.disk_usage(directory.root).free
    verdict = "warning" if free < _LITTLE + config.limits.held_bytes else "ok"
    yield Diagnosis(
        "disk", verdict, f"{free / 1e9:.1f} GB free, up to {3 * config.limits.held_bytes / 1e9:.1f} GB used"
    )
    try:
        for standing in look(directory.log, check=True):
            yield standing_line(standing, config)
    except LdpError as error:
        yield Diagnosis("relay.db", "wrong", str(error))


def look(path: Path, *, check: bool = False) -> list[Standing]:
    """How the collections stand, from the file; `check` also looks for damage."""
    if not path.is_file():
        raise StorageError(f"{path} is missing: start the relay with `ldp-server relay serve` first")
    with closing(open_relay_log(path, read_only=True)) as db:
        if check:
            with translated(path):
                found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise StorageError(f"{path} is damaged: {found}")
        return standings(db, path)


def standing_line(one: Standing, config: RelayConfig) -> Diagnosis:
    """How one collection stands, in words. One without a release for weeks is a warning."""
    collection = Collection.from_bytes(one.spec)
    seconds = collection.schedule.period_seconds if collection.schedule else config.hold.round_seconds
    parts = [f"{one.held} held, {one.outgoing} on their way, {one.smallest_batch} needed for a release"]
    if one.short:
        parts.append(
            f"too few at the end of {one.short} rounds of {format_duration(seconds)} in a row; what is held is deleted "
            f"if the window ends with fewer than {one.smallest_batch}"
        )
    verdict = "warning" if one.short * seconds >= _LONG else "ok"
    return Diagnosis(f"collection {one.id.hex()[:12]}", verdict, "; ".join(parts))

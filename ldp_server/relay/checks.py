"""Checks a relay's configuration, its files, its data directory and its way to the collection server.

Nothing is changed. How the collections stand is read from relay.db, also beside a running relay.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from ldp_client.collection import Collection
from ldp_client.durations import format_duration
from ldp_client.errors import LdpError
from ldp_client.protocol.reasons import RELAY_SLACK_SECONDS, WINDOW_SLACK_SECONDS
from ldp_client.sending.grpc_transport import GrpcTransport
from ldp_client.trust.signed_list import verify_head
from ldp_server.diagnosis import Diagnosis, of_certificates, of_folder
from ldp_server.relay.assemble import RelayDirectory
from ldp_server.relay.config import RelayConfig, check_use, load_relay_config
from ldp_server.relay.store import LOSS, Standing, standings
from ldp_server.relay.store.schema import open_relay_log
from ldp_server.service.admission.key_files import load_public_key
from ldp_server.service.tls import TlsFiles
from ldp_server.store.directory import is_held
from ldp_server.store.errors import Corrupt, StorageError, refuse_empty, replaced, translated
from ldp_server.store.wal import refuse_damaged

__all__ = ["examine_relay", "look", "room_line", "standing_line"]

_LITTLE = 1 << 30
_SECONDS = 10.0
_FULL = 0.8
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
    for what, file in (("certificate", config.tls.certificate), ("client certificate", config.forward.certificate)):
        yield from of_certificates(what, file, time.time())
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
    yield from of_folder(directory.root, _LITTLE + config.limits.held_bytes)
    try:
        found = look(directory.log, check=True)
        yield room_line(sum(one.bytes for one in found), config.limits.held_bytes)
        for standing in found:
            yield standing_line(standing, config)
    except LdpError as error:
        yield Diagnosis("relay.db", "wrong", str(error))


def room_line(held: int, most: int) -> Diagnosis:
    """How much of `limits.held_bytes` is used. Beyond it, apps are told "not now"."""
    verdict = "warning" if held > _FULL * most else "ok"
    return Diagnosis("room", verdict, f"{held / 1e6:.1f} MB held or on their way, at most {most / 1e6:.0f} MB")


def look(path: Path, *, check: bool = False) -> list[Standing]:
    """How the collections stand, from the file; `check` also looks for damage."""
    if not path.is_file():
        raise StorageError(f"{path} is missing: start the relay with `ldp-server relay serve` first")
    refuse_empty(path, LOSS)
    if not is_held(path.with_name("lock")):
        refuse_damaged(path)
    with replaced(path, LOSS), closing(open_relay_log(path, read_only=True)) as db:
        if check:
            with translated(path):
                found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise Corrupt(f"{path} is damaged: {found}")
        return standings(db, path)


def standing_line(one: Standing, config: RelayConfig, now: float | None = None) -> Diagnosis:
    """How one collection stands, in words. One without a release for weeks is a warning, and so is a wrong clock."""
    now = time.time() if now is None else now
    collection = Collection.from_bytes(one.spec)
    seconds = collection.schedule.period_seconds if collection.schedule else config.hold.round_seconds
    parts = [f"{one.held} held, {one.outgoing} on their way, {one.smallest_batch} needed for a release"]
    if one.short:
        parts.append(
            f"too few at the end of {one.short} rounds of {format_duration(seconds)} in a row; what is held is deleted "
            f"if the window ends with fewer than {one.smallest_batch}"
        )
    warns = one.short * seconds >= _LONG
    if one.outgoing and now > collection.closes + RELAY_SLACK_SECONDS:
        parts.append("the collection server takes them no more: its window is over by a week")
        warns = True
    if one.newest is not None and one.newest * seconds > now + WINDOW_SLACK_SECONDS:
        parts.append("some wait for a round that has not begun: the clock was ahead when they came, or is behind now")
        warns = True
    return Diagnosis(f"collection {one.id.hex()[:12]}", "warning" if warns else "ok", "; ".join(parts))

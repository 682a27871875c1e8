"""Checks a data directory and a configuration, and changes nothing."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, LdpError, ServerRefused
from ldp_client.sending.target import is_loopback_host
from ldp_server.arrays.packing import unpack
from ldp_server.config import Config, load_config, split_address
from ldp_server.diagnosis import Diagnosis, of_certificates, of_folder
from ldp_server.oracles import restore
from ldp_server.sealing.keys import load_keys
from ldp_server.service.admission import Verifiers
from ldp_server.service.admission.key_files import load_private_key, load_public_key
from ldp_server.service.ports import plaintext_ports
from ldp_server.service.tls import TlsFiles
from ldp_server.store import CollectionRecord, DataDirectory, LogReader, PeriodRecord, SqliteReader
from ldp_server.store.access import count_tokens
from ldp_server.store.checkpoints import checkpoint_path, read_checkpoint
from ldp_server.store.engines import open_store
from ldp_server.store.errors import Corrupt, translated
from ldp_server.store.wal import refuse_damaged

__all__ = ["examine"]

_LITTLE = 1 << 30
_DAY = 86_400
_SOON = 3 * _DAY


def examine(
    data: Path | None, config: Path | None, *, deep: bool = False, store: str | None = None
) -> Iterator[Diagnosis]:
    """Make all checks, in order. Without `data` or `store`, check those that the configuration names."""
    loaded = Config()
    if config is not None:
        try:
            loaded = load_config(config)
        except LdpError as error:
            yield Diagnosis("configuration", "wrong", str(error))
            if data is None:
                return
        else:
            yield from _configuration(loaded)
    folder, address = loaded.data if data is None else data, loaded.store if store is None else store
    yield from _shared(address, folder, deep=deep) if address else _directory(folder, deep=deep)


def _shared(address: str, data: Path, *, deep: bool) -> Iterator[Diagnosis]:
    """Look at a store that several servers share."""
    try:
        store = open_store(address, data)
        log = store.reader()
    except LdpError as error:
        yield Diagnosis("store", "wrong", str(error))
        return
    try:
        yield Diagnosis("store", "ok", f"{store.name}, {store.usage().used / 1e9:.1f} GB")
        yield from _log(log, DataDirectory(data), deep=deep)
    except LdpError as error:
        yield Diagnosis("log", "wrong", str(error))
    finally:
        log.close()


def _configuration(config: Config) -> Iterator[Diagnosis]:
    yield Diagnosis("configuration", "ok", "every setting is known and of the right kind")
    try:
        keys, issuers = config.admission.linkable_token_keys, config.admission.unlinkable_token_keys
        Verifiers.load(config.admission)
        if keys or issuers:
            yield Diagnosis("admission keys", "ok", f"{len(keys) + len(issuers)} read")
        if not config.store:
            plaintext_ports(config, ("collector", "analyst"))
        yield from _publishing(config)
        if config.tls.certificate is not None:
            TlsFiles(config.tls, config.collector.client_ca)
            TlsFiles(config.tls, config.analyst.client_ca)
            yield Diagnosis("TLS files", "ok", "the key fits the certificate")
            yield from of_certificates("certificate", config.tls.certificate, time.time())
    except LdpError as error:
        yield Diagnosis("ports, keys and certificates", "wrong", str(error))
    if config.sealing.keys is not None:
        yield _sealing_keys(config.sealing.keys)
    yield _limits_by_address(config)
    if config.collector.plaintext:
        yield Diagnosis("plaintext", "warning", "unencrypted connections from other machines are allowed")
    if config.analyst.plaintext:
        yield Diagnosis("operators' plaintext", "warning", "operators' tokens may travel unencrypted")


def _publishing(config: Config) -> Iterator[Diagnosis]:
    """Whether the keys of the public list can be read, and by whom."""
    signing, others = config.publish.signing_key, config.publish.witnesses
    for path in (*others, *([config.publish.next_key] if config.publish.next_key else [])):
        load_public_key(path)
    if signing is not None:
        load_private_key(signing)
        mode = stat.S_IMODE(signing.stat().st_mode)
        verdict = "warning" if mode & 0o077 else "ok"
        yield Diagnosis("list's signing key", verdict, f"{signing} has mode {mode:04o}, 0600 is expected")


def _sealing_keys(directory: Path) -> Diagnosis:
    """Whether devices have a key to seal with for the next days."""
    what, now = "sealing keys", time.time()
    try:
        keys = load_keys(directory)
    except InvalidSpec as error:
        return Diagnosis(what, "wrong", str(error))
    left = max((key.not_after for key in keys), default=0) - now
    make = f"make a new one (ldp-server key new {directory})"
    if left <= 0:
        return Diagnosis(what, "wrong", f"no key has time left, so devices cannot seal: {make}")
    if left < _SOON:
        return Diagnosis(what, "warning", f"the last key ends within {_SOON // _DAY} days: {make}")
    return Diagnosis(what, "ok", f"{len(keys)} read; the last one ends in {int(left // _DAY)} days")


def _limits_by_address(config: Config) -> Diagnosis:
    """Whether the server can tell its callers' addresses apart: behind a proxy it must be told of it."""
    what, admission = "limits by address", config.admission
    everybody = [text for text in admission.trusted_proxies if ip_network(text).prefixlen == 0]
    if everybody:
        return Diagnosis(what, "warning", f"admission.trusted_proxies has {everybody[0]}: every caller may lie")
    if admission.trusted_proxies or admission.limit_this_machine:
        return Diagnosis(what, "ok", "proxies that may speak for others are named, or this machine is limited too")
    if config.collector.plaintext:
        detail = "apps seem to come through a proxy that encrypts, and admission.trusted_proxies does not name it"
        return Diagnosis(what, "warning", f"{detail}: all who call through it count as one address")
    if is_loopback_host(split_address(config.collector.listen, "collector.listen")[0]):
        detail = "only this machine can connect, and it has no limits; behind a proxy set admission.trusted_proxies"
        return Diagnosis(what, "ok", f"{detail}, or admission.limit_this_machine for one that adds no headers")
    return Diagnosis(what, "ok", "apps connect directly")


def _directory(data: Path, *, deep: bool) -> Iterator[Diagnosis]:
    directory = DataDirectory(data)
    try:
        directory.require()
    except LdpError:
        yield Diagnosis("data directory", "wrong", f"{data} holds no log")
        return
    yield from of_folder(data, _LITTLE)
    served = directory.served()
    yield Diagnosis("server", "ok", "running" if served else "not running")
    yield _files(directory)
    yield _tokens(directory)
    try:
        directory.refuse_moved()
        if not served:
            refuse_damaged(directory.log)
        log = SqliteReader(directory.log)
    except LdpError as error:
        yield Diagnosis("log", "wrong", str(error))
        return
    try:
        yield from _log(log, directory, deep=deep)
    except LdpError as error:
        yield Diagnosis("log", "wrong", str(error))
    finally:
        log.close()


def _files(directory: DataDirectory) -> Diagnosis:
    """Whether this user may read and write each file."""
    what = "files"
    names = (directory.log, directory.access, directory.lock, directory.states, directory.cosignatures)
    there = [path for path in names if path.exists()]
    closed = [path.name for path in there if not os.access(path, os.R_OK | os.W_OK)]
    if closed:
        return Diagnosis(what, "wrong", f"this user may not read and write {', '.join(closed)}: check owner and mode")
    return Diagnosis(what, "ok", "this user may read and write them")


def _tokens(directory: DataDirectory) -> Diagnosis:
    """Whether analysts' tokens can be read."""
    what = "analysts' tokens"
    if not directory.access.exists():
        return Diagnosis(what, "ok", "none")
    try:
        given = count_tokens(directory.access)
    except LdpError as error:
        return Diagnosis(what, "wrong", str(error))
    return Diagnosis(what, "ok", f"{given} in the file")


def _log(log: LogReader, directory: DataDirectory, *, deep: bool) -> Iterator[Diagnosis]:
    log.check()
    yield Diagnosis("log", "ok", "its structure is sound")
    for record in log.records():
        if record.deleted is None:
            name = f"collection {record.id.hex()[:12]}"
            try:
                yield Diagnosis(name, "ok", _collection(log, record, deep=deep))
            except LdpError as error:
                yield Diagnosis(name, "wrong", str(error))
                continue
            for period in log.periods(record.number):
                place = (directory.states, record.id, period.period, period.shard)
                with translated(directory.states):
                    there = checkpoint_path(*place).exists()
                if there and read_checkpoint(*place) is None:
                    yield Diagnosis(name, "warning", "a checkpoint is damaged; counts will be built from the log again")
                    break


def _collection(log: LogReader, record: CollectionRecord, *, deep: bool) -> str:
    collection = Collection.from_bytes(record.spec)
    if collection.id != record.id:
        raise InvalidSpec("its spec does not hash to its id: the row is damaged")
    log.check_recent(record.number)
    periods = log.periods(record.number)
    looked = [_period(log, one, collection, deep=deep) for one in periods]
    batches, reports = (sum(numbers) for numbers in zip((0, 0), *looked, strict=True))
    of = "" if collection.schedule is None else f" in {len({one.period for one in periods})} periods"
    if record.compacted:
        return f"compacted, {reports} reports{of}"
    return f"{batches} batches, {reports} reports{of}, every digest fits" if deep else f"{batches} batches{of}"


def _period(log: LogReader, period: PeriodRecord, collection: Collection, *, deep: bool) -> tuple[int, int]:
    """Look at one period; return its batches and its reports. What is not folded is read only if `deep`."""
    state = log.folded_state(period)
    if state is not None:
        oracle = restore(collection, state)
        if oracle.reports != period.folded_reports:
            raise InvalidSpec(f"its counts hold {oracle.reports} reports, {period.folded_reports} were folded")
    if period.generation is not None:
        return period.folded_batches, period.folded_reports
    return _read_all(log, period, collection) if deep else (log.count(period.number), 0)


def _read_all(log: LogReader, period: PeriodRecord, collection: Collection) -> tuple[int, int]:
    """Read every batch; the log compares each with its digest, and its number with its neighbour's."""
    width, bound = collection.randomizer.report_bytes, collection.randomizer.bound
    batches = reports = 0
    for found in log.read_all(period.number, 0):
        for batch in found:
            try:
                reports += len(unpack(batch.payload, width, bound))
            except ServerRefused:
                raise Corrupt("a batch holds a report that is out of range: restore a backup") from None
        batches += len(found)
    return batches, reports

"""The server's configuration: one TOML file, every setting optional, every unknown one refused.

`SAMPLE` is a commented file with every setting at its default. `ldp-server config` prints it, and a test reads it and
compares. Paths are relative to the file that names them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any, NewType, TypeVar, get_type_hints

from ldp_client.durations import parse_duration
from ldp_client.errors import InvalidSpec
from ldp_client.sending.target import is_loopback_host
from ldp_server.store.commit import LINGER
from ldp_server.store.engines import check_address

__all__ = [
    "SAMPLE",
    "AddressAdmission",
    "AdmissionConfig",
    "AnalystConfig",
    "CallLimits",
    "CollectorConfig",
    "Config",
    "LimitsConfig",
    "ProcessWatch",
    "PublishConfig",
    "RetentionConfig",
    "SealingConfig",
    "TlsConfig",
    "WatchConfig",
    "WebConfig",
    "load_config",
    "parse_config",
    "parse_settings",
    "settings_text",
    "split_address",
]

SAMPLE = (Path(__file__).parent / "sample.toml").read_text(encoding="utf-8")

S = TypeVar("S")
StoreAddress = NewType("StoreAddress", str)
"""The address of a store; those of several databases with a space between."""

LONGEST_LINGER = 1.0
_LARGEST = 10**15
"""Of any number. More is a mistake, and no clock or system can use it."""
MOST_OPENERS = 64
"""The most processes that open sealed reports."""


@dataclass(frozen=True)
class CollectorConfig:
    """Where apps connect."""

    listen: str = "127.0.0.1:7900"
    client_ca: Path | None = None
    plaintext: bool = False
    share_port: bool = False
    volunteers: bool = False
    """Whether sealed records of volunteers are kept, for a curator."""


@dataclass(frozen=True)
class AnalystConfig:
    """Where operators connect. If `listen` is empty, they use the collector's port."""

    listen: str = ""
    client_ca: Path | None = None
    certificate_names: tuple[str, ...] = ()
    plaintext: bool = False


@dataclass(frozen=True)
class TlsConfig:
    """The server's own certificate, read again when the files change."""

    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True)
class AddressAdmission:
    """How much one address may send."""

    reports_per_second: float = 100.0
    burst: float = 10_000.0
    trusted_proxies: tuple[str, ...] = ()
    limit_this_machine: bool = False


@dataclass(frozen=True)
class AdmissionConfig(AddressAdmission):
    """Settings of admission that hold for all collections."""

    collectors: int = 1
    certificate_reports_per_second: float = 1_000.0
    certificate_burst: float = 250_000.0
    linkable_token_keys: tuple[Path, ...] = ()
    unlinkable_token_keys: tuple[Path, ...] = ()


@dataclass(frozen=True)
class CallLimits:
    """Bounds of what callers may use, in memory and time."""

    waiting_bytes: int = 64_000_000
    stream_batches: int = 256
    stream_bytes: int = 1_000_000
    calls: int = 1_000
    calls_by_address: int = 100
    connections: int = 4_000
    connections_by_address: int = 100
    connection_seconds: float = 3_600.0
    idle_seconds: float = 60.0
    answer_bytes: int = 64_000_000
    drain_seconds: float = 20.0


@dataclass(frozen=True)
class LimitsConfig(CallLimits):
    """Bounds of memory, disk and time."""

    collections: int = 10_000
    periods: int = 10_000
    query_items: int = 100_000
    worker_memory_mb: int = 4096
    decodes: int = 1
    decode_seconds: float = 600.0
    linger_seconds: float = LINGER


@dataclass(frozen=True)
class RetentionConfig:
    """When reports become counts and are dropped."""

    compact_after: str = "7 days"
    fold_periods_after: str = "never"
    drop_periods_after: str = "never"
    checkpoint_every: str = "30 seconds"

    @property
    def compact_seconds(self) -> int | None:
        """How long after its window the server compacts a collection; None: only an operator does."""
        return _after(self.compact_after, "retention.compact_after")

    @property
    def fold_seconds(self) -> int | None:
        """How long after its end a period of a schedule becomes counts; None: with its collection."""
        return _after(self.fold_periods_after, "retention.fold_periods_after")

    @property
    def drop_seconds(self) -> int | None:
        """How long after its end the counts of a period go, too; None: never."""
        return _after(self.drop_periods_after, "retention.drop_periods_after")

    @property
    def checkpoint_seconds(self) -> int:
        """How often counts are brought up to date in the background."""
        return parse_duration(self.checkpoint_every, "retention.checkpoint_every")


def _after(text: str, name: str) -> int | None:
    return None if text == "never" else parse_duration(text, name)


@dataclass(frozen=True)
class SealingConfig:
    """Sealed reports, which pass through a relay."""

    keys: Path | None = None
    opens_after: str = "30 days"
    workers: int = 1

    @property
    def opens_seconds(self) -> int:
        """How long after a key's time what was sealed to it is opened."""
        return parse_duration(self.opens_after, "sealing.opens_after")


@dataclass(frozen=True)
class PublishConfig:
    """The public list of collections."""

    signing_key: Path | None = None
    next_key: Path | None = None
    witnesses: tuple[Path, ...] = ()


@dataclass(frozen=True)
class ProcessWatch:
    """Metrics and logs of a process."""

    metrics: str = ""
    log_format: str = "text"
    log_level: str = "info"


@dataclass(frozen=True)
class WatchConfig(ProcessWatch):
    """Metrics, traces and logs."""

    traces: str = ""
    collections: int = 100


@dataclass(frozen=True)
class WebConfig:
    """Pages for analysts and operators, in a process of their own. If `listen` is empty, there are none."""

    listen: str = ""
    names: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None
    plaintext: bool = False
    trusted_proxies: tuple[str, ...] = ()
    public: bool = False
    released: Path | None = None
    curator_releases: Path | None = None
    curator_key: Path | None = None


@dataclass(frozen=True)
class Config:
    """All settings of `ldp-server serve`."""

    data: Path = Path("hearsay-data")
    store: StoreAddress = StoreAddress("")
    collector: CollectorConfig = field(default_factory=CollectorConfig)
    analyst: AnalystConfig = field(default_factory=AnalystConfig)
    tls: TlsConfig = field(default_factory=TlsConfig)
    admission: AdmissionConfig = field(default_factory=AdmissionConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    retention: RetentionConfig = field(default_factory=RetentionConfig)
    sealing: SealingConfig = field(default_factory=SealingConfig)
    publish: PublishConfig = field(default_factory=PublishConfig)
    watch: WatchConfig = field(default_factory=WatchConfig)
    web: WebConfig = field(default_factory=WebConfig)

    def __post_init__(self) -> None:
        _check(self)

    def with_listen(self, listen: str) -> Config:
        """Return a copy with another address for apps."""
        return replace(self, collector=replace(self.collector, listen=listen))


def split_address(text: str, setting: str) -> tuple[str, int]:
    """Split `host:port`."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise InvalidSpec(f"{setting} is host:port, such as 127.0.0.1:7900, not {text!r}")
    return host.strip("[]"), int(port)


_ABOVE_ZERO = (
    "waiting_bytes",
    "stream_batches",
    "stream_bytes",
    "calls",
    "calls_by_address",
    "connections",
    "connections_by_address",
    "connection_seconds",
    "idle_seconds",
    "answer_bytes",
    "periods",
    "worker_memory_mb",
    "decodes",
    "decode_seconds",
)


def _check(config: Config) -> None:
    check_address(config.store)
    _check_sharing(config)
    _check_addresses(config)
    _check_certificates(config)
    if config.watch.log_format not in {"text", "json"}:
        raise InvalidSpec('watch.log_format is "text" or "json"')
    if config.watch.log_level not in {"debug", "info", "warning", "error"}:
        raise InvalidSpec('watch.log_level is "debug", "info", "warning" or "error"')
    for name in ("limits", "admission", "watch"):
        section = getattr(config, name)
        for item in fields(section):
            value = getattr(section, item.name)
            if isinstance(value, int | float) and value < 0:
                raise InvalidSpec(f"{name}.{item.name} must not be negative")
    _check_limits(config.limits)
    if not (config.retention.compact_seconds is None or config.retention.compact_seconds > 0):
        raise InvalidSpec("retention.compact_after must be above 0")
    fold, drop = config.retention.fold_seconds, config.retention.drop_seconds
    if fold is not None and drop is not None and drop < fold:
        raise InvalidSpec("retention.drop_periods_after must not be shorter than retention.fold_periods_after")
    if config.sealing.opens_seconds <= 0:
        raise InvalidSpec("sealing.opens_after must be above 0")
    if not 1 <= config.sealing.workers <= MOST_OPENERS:
        raise InvalidSpec(f"sealing.workers is 1 to {MOST_OPENERS}")
    if config.retention.checkpoint_seconds <= 0:
        raise InvalidSpec("retention.checkpoint_every must be above 0")


def _check_limits(limits: LimitsConfig) -> None:
    for name in _ABOVE_ZERO:
        if not getattr(limits, name):
            raise InvalidSpec(f"limits.{name} must be above 0")
    if limits.linger_seconds > LONGEST_LINGER:
        raise InvalidSpec(f"limits.linger_seconds is at most {LONGEST_LINGER:g}: every batch would wait for so long")


def _check_sharing(config: Config) -> None:
    if config.admission.collectors < 1:
        raise InvalidSpec("admission.collectors must be above 0")
    if not config.store and (config.collector.share_port or config.admission.collectors > 1):
        raise InvalidSpec(
            "several collectors need a store that they share: set store, such as postgresql://hearsay@db/hearsay"
        )


def _check_addresses(config: Config) -> None:
    if (config.web.curator_releases is None) != (config.web.curator_key is None):
        raise InvalidSpec("web.curator_releases and web.curator_key belong together: set both, or neither")
    for text in config.admission.trusted_proxies:
        try:
            ip_network(text)
        except ValueError:
            raise InvalidSpec(f"admission.trusted_proxies: {text!r} is not an address or a network") from None
    split_address(config.collector.listen, "collector.listen")
    if config.analyst.listen:
        split_address(config.analyst.listen, "analyst.listen")
    if config.web.listen:
        split_address(config.web.listen, "web.listen")
    if config.watch.metrics:
        split_address(config.watch.metrics, "watch.metrics")
    if config.watch.traces:
        _check_traces(config.watch.traces)


def _check_traces(endpoint: str) -> None:
    scheme, _, address = endpoint.partition("://")
    if scheme not in {"http", "https"}:
        raise InvalidSpec(f"watch.traces is an OTLP endpoint, such as http://127.0.0.1:4317, not {endpoint!r}")
    host, _ = split_address(address.rstrip("/"), "watch.traces, without http:// or https://,")
    if scheme == "http" and not is_loopback_host(host):
        raise InvalidSpec(
            f"watch.traces would send traces unencrypted to {host}: use https://, or a collector on this machine"
        )


def _check_certificates(config: Config) -> None:
    collector, analyst, tls = config.collector, config.analyst, config.tls
    if not analyst.listen and analyst.client_ca not in {None, collector.client_ca}:
        raise InvalidSpec("analyst.client_ca needs a port of its own: set analyst.listen")
    if (tls.certificate is None) != (tls.key is None):
        raise InvalidSpec("set both tls.certificate and tls.key, or neither")
    if tls.certificate is None and (collector.client_ca or analyst.client_ca):
        raise InvalidSpec("client certificates need TLS: set tls.certificate and tls.key")
    if analyst.certificate_names and not (analyst.client_ca or collector.client_ca):
        raise InvalidSpec("analyst.certificate_names needs analyst.client_ca")


def load_config(path: Path) -> Config:
    """Read a file; `InvalidSpec` says which setting is wrong."""
    return parse_config(settings_text(path), path.parent)


def settings_text(path: Path) -> str:
    """The text of a file of settings."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InvalidSpec(f"cannot read {path}: {reason}") from None


def parse_config(text: str, folder: Path) -> Config:
    """Read the text of a file that lies in `folder`."""
    return parse_settings(Config, text, folder)


def parse_settings(kind: type[S], text: str, folder: Path, prints: str = "`ldp-server config`") -> S:
    """Read settings of one kind from the text of a file that lies in `folder`; `prints` is what prints all of them."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a plain ValueError
        raise InvalidSpec(f"the configuration is not TOML: {error}") from None
    return _read(kind, data, folder, "", prints)


def _read(kind: type[S], data: Mapping[str, Any], folder: Path, prefix: str, prints: str) -> S:
    hints = get_type_hints(kind)
    unknown = sorted(set(data) - set(hints))
    if unknown:
        raise InvalidSpec(f"unknown setting {prefix}{unknown[0]}; {prints} prints every setting")
    values = {name: _value(hints[name], value, folder, prefix + name, prints) for name, value in data.items()}
    return kind(**values)


def _value(hint: Any, value: object, folder: Path, name: str, prints: str) -> object:
    if is_dataclass(hint) and isinstance(hint, type):
        if not isinstance(value, dict):
            raise InvalidSpec(f"{name} is a table: [{name}]")
        return _read(hint, value, folder, f"{name}.", prints)
    if hint is StoreAddress:
        addresses = [_of(str, one, name) for one in (value if isinstance(value, list) else [value])]
        for one in addresses:
            check_address(one)
        return " ".join(addresses)
    if hint in {Path, Path | None}:
        return _path(value, folder, name, required=hint is Path)
    if hint == tuple[Path, ...]:
        return tuple(_path(item, folder, name, required=True) for item in _list(value, name))
    if hint == tuple[str, ...]:
        return tuple(_of(str, item, name) for item in _list(value, name))
    return _of(hint, value, name)


def _of(kind: type[S], value: object, name: str) -> S:
    if isinstance(value, int | float) and not abs(value) <= _LARGEST:  # NaN is not, either
        raise InvalidSpec(f"{name} is a number of at most {_LARGEST:.0e}")
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InvalidSpec(f"{name} is a {kind.__name__}, not {type(value).__name__}")
    return value


def _list(value: object, name: str) -> list[object]:
    if not isinstance(value, list):
        raise InvalidSpec(f"{name} is a list")
    return value


def _path(value: object, folder: Path, name: str, *, required: bool) -> Path | None:
    text = _of(str, value, name)
    if "\0" in text:
        raise InvalidSpec(f"{name} is not the name of a file")
    if not text and not required:
        return None
    return folder / Path(text).expanduser()

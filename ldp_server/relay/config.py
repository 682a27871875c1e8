"""The settings of a relay: one TOML file, read as the collection server's is.

`SAMPLE` is a commented file with every setting at its default. `ldp-server relay config` prints it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from ipaddress import ip_network
from pathlib import Path

from ldp_client.durations import parse_duration
from ldp_client.errors import InvalidSpec, PolicyRefused, WrongType
from ldp_client.sending.target import Tls, check_target, check_tls, is_loopback_host
from ldp_server.config import (
    AddressAdmission,
    CallLimits,
    ProcessWatch,
    TlsConfig,
    parse_settings,
    settings_text,
    split_address,
)

__all__ = [
    "SAMPLE",
    "ForwardConfig",
    "HoldConfig",
    "RelayConfig",
    "RelayLimits",
    "RelayListen",
    "RelayWatch",
    "check_use",
    "load_relay_config",
    "parse_relay_config",
]

SAMPLE = (Path(__file__).parent / "sample.toml").read_text(encoding="utf-8")


@dataclass(frozen=True)
class RelayListen:
    """Where apps connect, and what they are told of the relay."""

    listen: str = "127.0.0.1:7950"
    plaintext: bool = False
    operator: str = ""


@dataclass(frozen=True)
class ForwardConfig:
    """The collection server that takes what is released, and how its list of collections is checked."""

    collector: str = "127.0.0.1:7900"
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    plaintext: bool = False
    list_keys: tuple[Path, ...] = ()
    collections: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    refresh: str = "1 hour"

    @property
    def token_bytes(self) -> dict[bytes, int]:
        """How long the admission token is that each unit of a collection holds, by the collection's id."""
        return dict(map(_token, self.tokens))

    @property
    def refresh_seconds(self) -> int:
        """How often the list is fetched."""
        return parse_duration(self.refresh, "forward.refresh")

    def tls(self) -> Tls | bool:
        """The files for the connection; False if it is plain text."""
        if self.plaintext:
            return False
        names = (None if path is None else str(path) for path in (self.ca, self.certificate, self.key))
        return Tls(*names)


@dataclass(frozen=True)
class HoldConfig:
    """How long reports are held."""

    round: str = "1 day"
    remember_rounds: int = 4
    give_up_after: str = "8 days"

    @property
    def round_seconds(self) -> int:
        """The length of a round of a question without a schedule."""
        return parse_duration(self.round, "hold.round")

    @property
    def give_up_seconds(self) -> int:
        """For how long after its window what was released is offered to the collection server."""
        return parse_duration(self.give_up_after, "hold.give_up_after")


@dataclass(frozen=True)
class RelayLimits(CallLimits):
    """Bounds of memory, disk and time."""

    held_bytes: int = 512_000_000
    collections: int = 1_000


@dataclass(frozen=True)
class RelayWatch(ProcessWatch):
    """Metrics and logs."""

    collections: int = 100


@dataclass(frozen=True)
class RelayConfig:
    """All settings of `ldp-server relay serve`."""

    data: Path = Path("hearsay-relay")
    relay: RelayListen = field(default_factory=RelayListen)
    tls: TlsConfig = field(default_factory=TlsConfig)
    forward: ForwardConfig = field(default_factory=ForwardConfig)
    hold: HoldConfig = field(default_factory=HoldConfig)
    admission: AddressAdmission = field(default_factory=AddressAdmission)
    limits: RelayLimits = field(default_factory=RelayLimits)
    watch: RelayWatch = field(default_factory=RelayWatch)

    def __post_init__(self) -> None:
        _check_addresses(self)
        _check_forward(self.forward)
        _check_numbers(self)

    def with_listen(self, listen: str) -> RelayConfig:
        """Return a copy with another address for apps."""
        return replace(self, relay=replace(self.relay, listen=listen))


def _check_addresses(config: RelayConfig) -> None:
    split_address(config.relay.listen, "relay.listen")
    if config.watch.metrics:
        split_address(config.watch.metrics, "watch.metrics")
    for text in config.admission.trusted_proxies:
        try:
            ip_network(text)
        except ValueError:
            raise InvalidSpec(f"admission.trusted_proxies: {text!r} is not an address or a network") from None
    if (config.tls.certificate is None) != (config.tls.key is None):
        raise InvalidSpec("set both tls.certificate and tls.key, or neither")


def _check_forward(forward: ForwardConfig) -> None:
    check_target(forward.collector)
    if (forward.certificate is None) != (forward.key is None):
        raise InvalidSpec("set both forward.certificate and forward.key, or neither")
    for text in forward.collections:
        if not _ID.fullmatch(text):
            raise InvalidSpec("forward.collections: write 64 lower-case hexadecimal digits for each collection")
    for text in forward.tokens:
        _token(text)


_ID = re.compile("[0-9a-f]{64}")
_TOKEN = re.compile("([0-9a-f]{64})=([1-9][0-9]{0,3})")


def _token(text: str) -> tuple[bytes, int]:
    found = _TOKEN.fullmatch(text)
    if found is None:
        raise InvalidSpec('forward.tokens: write "ID=BYTES", such as "0123...cdef=81", for each collection')
    return bytes.fromhex(found[1]), int(found[2])


def _check_numbers(config: RelayConfig) -> None:
    for name in ("reports_per_second", "burst"):
        if getattr(config.admission, name) < 0:
            raise InvalidSpec(f"admission.{name} must not be negative")
    for name, value in vars(config.limits).items():
        if value <= 0:
            raise InvalidSpec(f"limits.{name} must be above 0")
    if config.hold.remember_rounds < 0:
        raise InvalidSpec("hold.remember_rounds must not be negative")
    if config.watch.log_format not in {"text", "json"}:
        raise InvalidSpec('watch.log_format is "text" or "json"')
    if config.watch.log_level not in {"debug", "info", "warning", "error"}:
        raise InvalidSpec('watch.log_level is "debug", "info", "warning" or "error"')
    for seconds in (config.hold.round_seconds, config.hold.give_up_seconds, config.forward.refresh_seconds):
        if seconds < 1:
            raise InvalidSpec("a duration is at least a second")


def check_use(config: RelayConfig) -> None:
    """Raise `InvalidSpec` for settings that are sound and cannot serve: what is missing, or not encrypted."""
    forward = config.forward
    if not forward.list_keys and not forward.collections:
        raise InvalidSpec(
            "the relay does not know which collections to serve: set forward.list_keys (the key that signs the "
            "collection server's list), or forward.collections (ids)"
        )
    try:
        check_tls(forward.tls(), forward.collector)
    except (PolicyRefused, WrongType) as error:
        raise InvalidSpec(f"forward.collector: {error}") from None
    if not forward.plaintext and forward.certificate is None:
        raise InvalidSpec(
            "the collection server cannot tell this relay from others: set forward.certificate and forward.key (or "
            "forward.plaintext = true, to a server on this machine)"
        )
    host, _ = split_address(config.relay.listen, "relay.listen")
    if config.tls.certificate is None and not config.relay.plaintext and not is_loopback_host(host):
        raise InvalidSpec(
            f"relay.listen is {config.relay.listen} without TLS: set tls.certificate and tls.key, or "
            "relay.plaintext = true if a proxy in front of this relay encrypts"
        )


def load_relay_config(path: Path) -> RelayConfig:
    """Read a file; `InvalidSpec` says which setting is wrong."""
    return parse_relay_config(settings_text(path), path.parent)


def parse_relay_config(text: str, folder: Path) -> RelayConfig:
    """Read the text of a file that lies in `folder`."""
    return parse_settings(RelayConfig, text, folder, "`ldp-server relay config`")

"""The issuer's configuration: one TOML file, every unknown setting refused.

`SAMPLE` is a commented file with every setting at its default. `ldp-server token issuer-config` prints it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path

from ldp_client.durations import parse_duration
from ldp_client.errors import InvalidSpec
from ldp_client.sending.target import is_loopback_host
from ldp_server.config import ProcessWatch, TlsConfig, parse_settings, settings_text, split_address

__all__ = ["SAMPLE", "IssuerConfig", "IssuerLimits", "load_settings"]

SAMPLE = (Path(__file__).parent / "sample.toml").read_text(encoding="utf-8")
_PRINTS = "`ldp-server token issuer-config`"
_MOST_TOKENS = 1_000_000


@dataclass(frozen=True)
class IssuerLimits:
    """Bounds of memory and time."""

    calls: int = 64
    connections: int = 200
    idle_seconds: float = 60.0
    signatures_per_second: float = 1.0
    burst: float = 32.0
    drain_seconds: float = 20.0


@dataclass(frozen=True)
class IssuerConfig:
    """All settings of `ldp-server token issuer`."""

    data: Path = Path("hearsay-issuer")
    keys: tuple[Path, ...] = ()
    secrets: tuple[Path, ...] = ()
    tokens: int = 10
    period: str = "30 days"
    listen: str = "127.0.0.1:7910"
    client_ca: Path | None = None
    plaintext: bool = False
    tls: TlsConfig = field(default_factory=TlsConfig)
    limits: IssuerLimits = field(default_factory=IssuerLimits)
    watch: ProcessWatch = field(default_factory=ProcessWatch)

    @property
    def period_seconds(self) -> int:
        """The length of a period."""
        return parse_duration(self.period, "period")

    def __post_init__(self) -> None:
        if not 1 <= self.tokens <= _MOST_TOKENS:
            raise InvalidSpec(f"tokens: from 1 to {_MOST_TOKENS:,} for each account and period")
        if self.period_seconds <= 0:
            raise InvalidSpec("period must be above 0")
        for item in fields(self.limits):
            value = getattr(self.limits, item.name)
            least = "not be negative" if item.name in {"signatures_per_second", "drain_seconds"} else "be above 0"
            if value < 0 or (value == 0 and least == "be above 0"):
                raise InvalidSpec(f"limits.{item.name} must {least}")
        if self.watch.log_format not in {"text", "json"}:
            raise InvalidSpec('watch.log_format is "text" or "json"')
        if self.watch.log_level not in {"debug", "info", "warning", "error"}:
            raise InvalidSpec('watch.log_level is "debug", "info", "warning" or "error"')
        self._check_addresses()

    def _check_addresses(self) -> None:
        host, _ = split_address(self.listen, "listen")
        if self.watch.metrics:
            split_address(self.watch.metrics, "watch.metrics")
        if (self.tls.certificate is None) != (self.tls.key is None):
            raise InvalidSpec("set both tls.certificate and tls.key, or neither")
        if self.tls.certificate is None:
            if self.client_ca is not None:
                raise InvalidSpec("client certificates need TLS: set tls.certificate and tls.key")
            if not is_loopback_host(host) and not self.plaintext:
                raise InvalidSpec(
                    f"the back end's secret would travel unencrypted to {self.listen}: set tls.certificate and "
                    "tls.key, or plaintext = true if a proxy in front of this issuer encrypts"
                )

    def require(self) -> None:
        """Raise `InvalidSpec` unless the settings without a default are there."""
        if not self.keys:
            raise InvalidSpec("keys is empty: make a key with `ldp-server token issuer-key FILE` and name it there")
        if not self.secrets:
            raise InvalidSpec(
                "secrets is empty: make a secret with `ldp-server token issuer-secret FILE`, name it there, and give "
                "it to your back end"
            )


def load_settings(path: Path) -> IssuerConfig:
    """Read a file; `InvalidSpec` says which setting is wrong."""
    return parse_settings(IssuerConfig, settings_text(path), path.parent, _PRINTS)

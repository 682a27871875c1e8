"""Options of a client besides its target, storage and policy: small value objects with defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from ldp_client.clock import Clock, SystemClock
from ldp_client.coins import draw_words
from ldp_client.durations import parse_duration
from ldp_client.errors import InvalidSpec, WrongType
from ldp_client.sending.outbox import OutboxLimits
from ldp_client.sending.sender import TokenSource
from ldp_client.sending.target import Tls
from ldp_client.sending.transport import Transport
from ldp_client.sending.ways import RelayWay
from ldp_client.tokens.wallet import UnlinkableTokens, Wallet

if TYPE_CHECKING:
    from ldp_client.protocol.sealing import CollectorKey
    from ldp_client.sending.relay import RelayTransport

__all__ = [
    "LedgerFiles",
    "RelayOptions",
    "Sending",
    "Sources",
    "open_relay",
    "open_transport",
    "parse_delay",
    "token_source",
]


@dataclass(frozen=True)
class LedgerFiles:
    """The directory of ledger and outbox, and the place of the ledger's witness (default: the same directory).

    A witness in a place that backups do not reach shows when a backup of the directory was restored
    (ledger/witness.py).
    """

    directory: str | Path
    witness: str | Path | None = None


@dataclass(frozen=True)
class Sending:
    """How a client sends.

    `limits`             how much the outbox holds
    `linkable_tokens`    gives a token for a collection id, for collections that ask for linkable tokens
    `unlinkable_tokens`  how to fetch unlinkable tokens, and for which collections (tokens/wallet.py)
    `refresh`            how often the signed list is fetched, such as "1 day"
    `background`         False: start no thread; only `flush` and `close` send. For scripts and tests
    `exit_seconds`       how long the end of the program may take if `close` was not called
    """

    limits: OutboxLimits = field(default_factory=OutboxLimits)
    linkable_tokens: TokenSource | None = field(default=None, repr=False)
    unlinkable_tokens: UnlinkableTokens | None = None
    refresh: str = "1 day"
    background: bool = True
    exit_seconds: float = 2.0

    def __post_init__(self) -> None:
        if not isinstance(self.limits, OutboxLimits):
            raise WrongType(f"limits: give OutboxLimits(...), not {type(self.limits).__name__}")
        if not isinstance(self.unlinkable_tokens, UnlinkableTokens | None):
            raise WrongType("unlinkable_tokens: give UnlinkableTokens(...)")
        parse_duration(self.refresh, "refresh")

    @cached_property
    def refresh_seconds(self) -> int:
        return parse_duration(self.refresh, "refresh")


@dataclass(frozen=True)
class Sources:
    """The clock of a client and the source of its random words. Only tests change them (ldp_client.testing)."""

    clock: Clock = field(default_factory=SystemClock)
    coins: Callable[[int], Sequence[int]] = draw_words


class RelayOptions(TypedDict, total=False):
    """Where sealed reports go."""

    relay: str | RelayTransport | None
    """"host:port" of the relay. None: collections with a relay are refused."""
    relay_tls: Tls | bool
    """As `tls`, for the relay."""


def open_relay(
    keys: Callable[[], Iterable[CollectorKey]],
    clock: Clock,
    *,
    relay: str | RelayTransport | None = None,
    relay_tls: Tls | bool = True,
) -> RelayWay | None:
    """Return the way through a relay, if there is one. Mistakes in its address or TLS files show at once."""
    if relay is None:
        return None
    if not isinstance(relay, str):
        if not hasattr(relay, "promise"):
            raise WrongType(f'relay: give "host:port", not {type(relay).__name__}')
        return RelayWay(lambda: relay, keys, clock)
    from ldp_client.sending.relay import GrpcRelay

    GrpcRelay(relay, tls=relay_tls)
    return RelayWay(lambda: GrpcRelay(relay, tls=relay_tls), keys, clock)


def parse_delay(delay: str | int) -> int:
    """Return the seconds of a delay: text such as "1 hour", or 0 for none."""
    none = delay == 0 if isinstance(delay, int) and not isinstance(delay, bool) else delay in ("0", "0 s")
    if none:
        return 0
    return parse_duration(delay, "delay")


def token_source(linkable: TokenSource | None, wallet: Wallet | None) -> TokenSource | None:
    """Return where batches get their tokens: from the wallet, or else from the app; None if none is ever needed."""
    if wallet is None:
        return linkable

    def source(collection_id: bytes) -> bytes:
        if collection_id in wallet:
            return wallet.take(collection_id)
        return linkable(collection_id) if linkable is not None else b""

    return source


def open_transport(target: str | Transport, tls: Tls | bool) -> Transport:
    """Return a transport over gRPC to "host:port", or the Transport that was given."""
    if isinstance(target, str):
        from ldp_client.sending.grpc_transport import GrpcTransport  # other transports need none of it

        return GrpcTransport(target, tls=tls)
    if not hasattr(target, "submit"):
        raise WrongType(f'target: give "host:port" or a Transport, not {type(target).__name__}')
    if tls is not True:
        raise InvalidSpec("tls: a Transport has its own settings; leave tls out")
    return target

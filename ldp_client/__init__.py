"""Hearsay's client: randomizes one user's item on the device, so that no server ever holds it.

    from ldp_client import Client, Collection, Policy
    homepage = Collection.load("homepage.ldp")
    client = Client("collector.example.org:443", storage="~/.myapp/ldp",
                    policy=Policy(max_epsilon="1", budget="2", period="30 days", lifetime="12"))
    client.report(homepage, "www.example.org")
    client.close()

Names are imported when first used, so that an app's start pays for nothing that it does not need yet.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldp_client.client import Client, Receipt
    from ldp_client.collection import Collection, Schedule
    from ldp_client.errors import (
        BudgetExceeded,
        InvalidSpec,
        LdpError,
        PolicyRefused,
        ServerRefused,
        StorageError,
        StorageUntrusted,
        Unavailable,
    )
    from ldp_client.ledger.view import LedgerView
    from ldp_client.protocol.domain import Categories, Integers, Strings
    from ldp_client.sending.outbox import OutboxLimits, OutboxView
    from ldp_client.sending.sender import Delivery
    from ldp_client.sending.transport import Tls
    from ldp_client.trust.policy import Policy

__all__ = [
    "BudgetExceeded",
    "Categories",
    "Client",
    "Collection",
    "Delivery",
    "Integers",
    "InvalidSpec",
    "LdpError",
    "LedgerView",
    "OutboxLimits",
    "OutboxView",
    "Policy",
    "PolicyRefused",
    "Receipt",
    "Schedule",
    "ServerRefused",
    "StorageError",
    "StorageUntrusted",
    "Strings",
    "Tls",
    "Unavailable",
]

_HOMES = {
    "client": ("Client", "Receipt"),
    "collection": ("Collection", "Schedule"),
    "errors": (
        "BudgetExceeded", "InvalidSpec", "LdpError", "PolicyRefused", "ServerRefused", "StorageError",
        "StorageUntrusted", "Unavailable",
    ),
    "sending.outbox": ("OutboxLimits", "OutboxView"),
    "trust.policy": ("Policy",),
    "protocol.domain": ("Categories", "Integers", "Strings"),
    "sending.sender": ("Delivery",),
    "sending.transport": ("Tls",),
    "ledger.view": ("LedgerView",),
}  # fmt: skip
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Hearsay's client: randomizes one user's item on the device, so that no server ever holds the item.

    from ldp_client import Client, Collection, Policy
    homepage = Collection.load("homepage.ldp")
    client = Client("collector.example.org:443", storage="~/.myapp/ldp",
                    policy=Policy(max_epsilon="1", budget="2", period="30 days", lifetime="12"))
    client.report(homepage, "www.example.org")
    client.close()

Names are imported when they are first used, so that `import ldp_client` stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldp_client.aio import AsyncClient
    from ldp_client.client import Client, Receipt
    from ldp_client.clock import Clock
    from ldp_client.collection import Collection, Schedule
    from ldp_client.errors import (
        BudgetExceeded,
        InvalidSpec,
        LdpError,
        ListForked,
        NotWitnessed,
        PolicyRefused,
        ServerRefused,
        Stopped,
        StorageError,
        StorageUntrusted,
        Unavailable,
        WrongFields,
        WrongType,
    )
    from ldp_client.ledger.fields import FieldTotals
    from ldp_client.ledger.stopping import StopView
    from ldp_client.ledger.view import LedgerView, QuestionView, ResetView
    from ldp_client.options import LedgerFiles, Sending, Sources
    from ldp_client.protocol.domain import Attributes, Categories, Field, Integers, Item, Record, Sets, Strings, YesNo
    from ldp_client.sending.outbox import OutboxLimits, OutboxView
    from ldp_client.sending.sender import Delivery
    from ldp_client.sending.target import Tls
    from ldp_client.sending.transport import (
        Accepted,
        Batch,
        BatchOutcome,
        ListPart,
        Refused,
        Transport,
    )
    from ldp_client.tokens import IssuerKey, TokenSource, UnlinkableTokens
    from ldp_client.trust.list_heads import ListHead
    from ldp_client.trust.policy import Policy
    from ldp_client.volunteering import Consent
    from ldp_client.volunteering.book import VolunteeredView

__version__ = "0.1.0"

__all__ = [
    "Accepted",
    "AsyncClient",
    "Attributes",
    "Batch",
    "BatchOutcome",
    "BudgetExceeded",
    "Categories",
    "Client",
    "Clock",
    "Collection",
    "Consent",
    "Delivery",
    "Field",
    "FieldTotals",
    "Integers",
    "InvalidSpec",
    "IssuerKey",
    "Item",
    "LdpError",
    "LedgerFiles",
    "LedgerView",
    "ListForked",
    "ListHead",
    "ListPart",
    "NotWitnessed",
    "OutboxLimits",
    "OutboxView",
    "Policy",
    "PolicyRefused",
    "QuestionView",
    "Receipt",
    "Record",
    "Refused",
    "ResetView",
    "Schedule",
    "Sending",
    "ServerRefused",
    "Sets",
    "Sources",
    "StopView",
    "Stopped",
    "StorageError",
    "StorageUntrusted",
    "Strings",
    "Tls",
    "TokenSource",
    "Transport",
    "Unavailable",
    "UnlinkableTokens",
    "VolunteeredView",
    "WrongFields",
    "WrongType",
    "YesNo",
    "__version__",
]

_HOMES = {
    "aio": ("AsyncClient",),
    "client": ("Client", "Receipt"),
    "clock": ("Clock",),
    "collection": ("Collection", "Schedule"),
    "errors": (
        "BudgetExceeded", "InvalidSpec", "LdpError", "ListForked", "NotWitnessed", "PolicyRefused", "ServerRefused",
        "StorageError", "StorageUntrusted", "Stopped", "Unavailable", "WrongFields", "WrongType",
    ),
    "ledger.fields": ("FieldTotals",),
    "ledger.stopping": ("StopView",),
    "ledger.view": ("LedgerView", "QuestionView", "ResetView"),
    "options": ("LedgerFiles", "Sending", "Sources"),
    "protocol.domain": ("Attributes", "Categories", "Field", "Integers", "Item", "Record", "Sets", "Strings", "YesNo"),
    "sending.outbox": ("OutboxLimits", "OutboxView"),
    "sending.sender": ("Delivery",),
    "sending.target": ("Tls",),
    "sending.transport": ("Accepted", "Batch", "BatchOutcome", "ListPart", "Refused", "Transport"),
    "tokens": ("IssuerKey", "TokenSource", "UnlinkableTokens"),
    "trust.list_heads": ("ListHead",),
    "trust.policy": ("Policy",),
    "volunteering": ("Consent",),
    "volunteering.book": ("VolunteeredView",),
}  # fmt: skip
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

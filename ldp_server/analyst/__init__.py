"""The Python client of operators, who run a server's collections, and of analysts, who read its answers.

answers       each kind of answer with the collection that it is about
client        Analyst: one method a call
questions     the part of it that asks about one collection
over_time     the part of it that asks about several periods
collections   what a server says about its collections and itself
connection    address, TLS, token, time limits
failures      gRPC's statuses as the project's errors, with what to do
local         where the server of this machine is
"""

from ldp_client.sending.target import Tls
from ldp_server.analyst.answers import (
    CollectionAttributes,
    CollectionAverage,
    CollectionChange,
    CollectionComparison,
    CollectionEstimates,
    CollectionHeavyHitters,
    CollectionPeriods,
    CollectionQuantiles,
    CollectionRanges,
    CollectionTrend,
)
from ldp_server.analyst.client import Analyst
from ldp_server.analyst.collections import CollectionInfo, CollectionSummary, Exported, ServerStatus
from ldp_server.analyst.connection import Timeouts
from ldp_server.analyst.failures import RoleNeeded, TokenRefused
from ldp_server.analyst.questions import Which

__all__ = [
    "Analyst",
    "CollectionAttributes",
    "CollectionAverage",
    "CollectionChange",
    "CollectionComparison",
    "CollectionEstimates",
    "CollectionHeavyHitters",
    "CollectionInfo",
    "CollectionPeriods",
    "CollectionQuantiles",
    "CollectionRanges",
    "CollectionSummary",
    "CollectionTrend",
    "Exported",
    "RoleNeeded",
    "ServerStatus",
    "Timeouts",
    "Tls",
    "TokenRefused",
    "Which",
]

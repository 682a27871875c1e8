"""The Python client of operators, who run a server's collections, and of analysts, who read its answers.

answers       estimates and heavy hitters with the collection that they are about
client        Analyst: one method a question
collections   what a server says about its collections and itself
connection    address, TLS, token, time limits
failures      gRPC's statuses as the project's errors, with what to do
local         where the server of this machine is
"""

from ldp_client.sending.target import Tls
from ldp_server.analyst.answers import CollectionEstimates, CollectionHeavyHitters
from ldp_server.analyst.client import Analyst, Which
from ldp_server.analyst.collections import CollectionInfo, CollectionSummary, Exported, ServerStatus
from ldp_server.analyst.connection import Timeouts
from ldp_server.analyst.failures import RoleNeeded, TokenRefused

__all__ = [
    "Analyst",
    "CollectionEstimates",
    "CollectionHeavyHitters",
    "CollectionInfo",
    "CollectionSummary",
    "Exported",
    "RoleNeeded",
    "ServerStatus",
    "Timeouts",
    "Tls",
    "TokenRefused",
    "Which",
]

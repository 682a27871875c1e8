"""The Python client of operators, who run a server's collections, and of analysts, who read its answers.

answer        what every answer can do: become a data frame, a file, a page, a plot
answers       each kind of answer with the collection that it is about
synthetic     all tables of a collection of records, and synthetic records that have them
answers_over_time   the kinds about several periods or two collections
merged        answers that are merged with a curator's release about volunteers
client        Analyst: one method a call
questions     the methods that ask about one collection
relating      those about how fields of records go together
over_time     those that ask about several periods, or about two collections
aio           AsyncAnalyst: the same for asyncio
operations    the methods that create, list, show, close and export collections
asking        how one definition of a method serves both
reaching      which server to call
collections   what a server says about its collections and itself
connection    address, TLS, token, time limits
failures      gRPC's statuses as the project's errors, with what to do
"""

from ldp_client.sending.target import Tls
from ldp_server.analyst.aio import AsyncAnalyst
from ldp_server.analyst.answer import Answer
from ldp_server.analyst.answers import (
    CollectionAreas,
    CollectionAttributes,
    CollectionAverage,
    CollectionAverages,
    CollectionEstimates,
    CollectionGaps,
    CollectionHeavyHitters,
    CollectionPeriods,
    CollectionQuantiles,
    CollectionRanges,
    CollectionRegression,
    CollectionRules,
)
from ldp_server.analyst.answers_over_time import CollectionChange, CollectionComparison, CollectionTrend
from ldp_server.analyst.client import Analyst
from ldp_server.analyst.collections import CollectionInfo, CollectionSummary, Exported, ServerStatus
from ldp_server.analyst.connection import Timeouts
from ldp_server.analyst.failures import RoleNeeded, TokenRefused
from ldp_server.analyst.merged import (
    CollectionMerged,
    CollectionMergedAverage,
    average_with_volunteers,
    release_conditions,
    release_ranges,
    with_volunteers,
)
from ldp_server.analyst.questions import EveryLook, Which
from ldp_server.analyst.synthetic.records import CollectionTables, SyntheticRecords
from ldp_server.answers.fields.conditions import Condition, condition_of_text

__all__ = [
    "Analyst",
    "Answer",
    "AsyncAnalyst",
    "CollectionAreas",
    "CollectionAttributes",
    "CollectionAverage",
    "CollectionAverages",
    "CollectionChange",
    "CollectionComparison",
    "CollectionEstimates",
    "CollectionGaps",
    "CollectionHeavyHitters",
    "CollectionInfo",
    "CollectionMerged",
    "CollectionMergedAverage",
    "CollectionPeriods",
    "CollectionQuantiles",
    "CollectionRanges",
    "CollectionRegression",
    "CollectionRules",
    "CollectionSummary",
    "CollectionTables",
    "CollectionTrend",
    "Condition",
    "EveryLook",
    "Exported",
    "RoleNeeded",
    "ServerStatus",
    "SyntheticRecords",
    "Timeouts",
    "Tls",
    "TokenRefused",
    "Which",
    "average_with_volunteers",
    "condition_of_text",
    "release_conditions",
    "release_ranges",
    "with_volunteers",
]

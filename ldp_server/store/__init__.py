"""The store: a report log that keeps every batch exactly once, and the files beside it.

log            the types that go in and out
interface      what a store must do: `LogReader`, `ReportLog`, `AccessTokens`, `Store`
engines        the stores there are, by their addresses
postgres       a store on PostgreSQL, for several servers (an extra)
sharded        a store on several databases of PostgreSQL
sqlite         writing the log on SQLite; reader: reading and copying it. Both are made of:
  schema         the tables and their versions
  catalog        the rows of collections and of their periods
  insert         inserting a group of submissions, and the sealed units that are counted
  blocks         where the order of arrival is forgotten
  retention      folding reports into counts, dropping what is not needed
  wal            moving the write-ahead log; looking at one that a killed process left
damage         finding damage in what was read
commit         the writer thread: one transaction for everything that waits
checkpoints    files with the counts up to a position of the log
access         analyst tokens in a file
directory      the data directory and the lock on it
errors         what can be wrong, for an operator
"""

from ldp_server.store.access import LIFETIME, ROLES, AccessFile, AnalystToken, SteadyClock
from ldp_server.store.commit import Committing, GroupCommit, Ticket
from ldp_server.store.directory import DataDirectory, DirectoryLock
from ldp_server.store.interface import AccessTokens, LogReader, ReportLog, Store, StoreUsage
from ldp_server.store.log import (
    TOKEN_KINDS,
    Admission,
    AppendOutcome,
    CollectionRecord,
    Fold,
    NewCollection,
    PeriodRecord,
    StoredBatch,
    Submission,
    fold_parts,
)
from ldp_server.store.reader import SqliteReader
from ldp_server.store.sqlite import SqliteLog

__all__ = [
    "LIFETIME",
    "ROLES",
    "TOKEN_KINDS",
    "AccessFile",
    "AccessTokens",
    "Admission",
    "AnalystToken",
    "AppendOutcome",
    "CollectionRecord",
    "Committing",
    "DataDirectory",
    "DirectoryLock",
    "Fold",
    "GroupCommit",
    "LogReader",
    "NewCollection",
    "PeriodRecord",
    "ReportLog",
    "SqliteLog",
    "SqliteReader",
    "SteadyClock",
    "Store",
    "StoreUsage",
    "StoredBatch",
    "Submission",
    "Ticket",
    "fold_parts",
]

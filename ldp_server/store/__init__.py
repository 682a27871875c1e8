"""The store: a report log that keeps every batch exactly once, and what grows around it.

directory     the data directory and the lock on it
log           what a report log must do (`ReportLog`), in types
schema, insert, sqlite_log, catalog      the log on SQLite
commit, checkpointer                     the writer thread and its helper
states, upkeep                           checkpoints of counts, folding, dropping, backup
access                                   analyst tokens
errors                                   what can be wrong, for an operator
"""

from ldp_server.store.access import AccessFile, AnalystToken
from ldp_server.store.commit import GroupCommit, Ticket
from ldp_server.store.directory import DataDirectory, DirectoryLock
from ldp_server.store.log import Admission, AppendOutcome, CollectionRecord, ReportLog, StoredBatch, Submission
from ldp_server.store.sqlite import SqliteLog

__all__ = [
    "AccessFile",
    "Admission",
    "AnalystToken",
    "AppendOutcome",
    "CollectionRecord",
    "DataDirectory",
    "DirectoryLock",
    "GroupCommit",
    "ReportLog",
    "SqliteLog",
    "StoredBatch",
    "Submission",
    "Ticket",
]

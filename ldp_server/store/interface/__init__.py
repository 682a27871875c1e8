"""What a store must do, in small parts.

reading   the catalogue and the batches
writing   batches, the catalogue, and blocks and counts in the long run
tokens    analysts' tokens
store     a place that is known by its address: it opens all of these

Service, worker and commands use these types only. There are two stores: SQLite in a data directory (sqlite.py), and
PostgreSQL for several servers (postgres/).
"""

from ldp_server.store.interface.reading import BatchReader, CatalogueReader, LogReader
from ldp_server.store.interface.store import Store, StoreUsage
from ldp_server.store.interface.tokens import AccessTokens
from ldp_server.store.interface.writing import BatchWriter, CatalogueWriter, LogKeeper, ReportLog

__all__ = [
    "AccessTokens",
    "BatchReader",
    "BatchWriter",
    "CatalogueReader",
    "CatalogueWriter",
    "LogKeeper",
    "LogReader",
    "ReportLog",
    "Store",
    "StoreUsage",
]

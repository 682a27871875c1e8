"""The store on PostgreSQL 15 or newer, for several servers at once. Needs psycopg (the extra `postgres`).

store       the store by its address
connecting  connections, and what a server must be like
schema      tables.sql, functions.sql, grants.sql, and their version
reader      reading the log; rows: its rows as records; arrays: arrays of ids in binary
log         writing it. It is made of:
  appending   one group, one transaction
  entering    the row of a new collection
  laying      blocks, where the order of arrival is forgotten
  retention   counts in the place of reports
access      analysts' tokens
rights      whether a user has the rights that its part of the work needs
watching    what other servers change
failures    psycopg's errors as the store's
"""

from ldp_server.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]

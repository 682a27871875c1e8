"""What a relay keeps: one SQLite file, relay.db.

    held        -> released (one transaction, all or nothing) -> forgotten, when the collection server has it

- A sealed unit is kept once, by the first 16 bytes of its SHA-256. Digests are remembered for some rounds after the
  unit has gone, so that a copy that comes late is not counted as another report.
- No address, no time of arrival and no order of arrival is written. What is known of a held unit is its collection, the
  round in which it came, the period that its sender names, and its block (at least 1,024 units that came together).
- A release takes a whole group or nothing. What was released keeps its batch ids until it has arrived, also across
  `kill -9`. So the collection server counts it once.

schema      the tables, and opening the file
held        units that wait: inserting, blocks, and writing them again in the order of their digests
released    a round is over: which groups go, which are merged into the next round, and the permutation
relay_log   all of it behind the writer thread
"""

from ldp_server.relay.store.relay_log import LOSS, KnownCollection, RelayLog, Standing, standings
from ldp_server.relay.store.released import Ended, Outgoing

__all__ = ["LOSS", "Ended", "KnownCollection", "Outgoing", "RelayLog", "Standing", "standings"]

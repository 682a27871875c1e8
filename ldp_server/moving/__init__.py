"""Moving everything that a store holds to another store, to the bit.

pieces     what is moved, in small pieces with a digest each
ends       what a store must do to be moved from, or to
embedded   SQLite in a data directory as such an end; embedded_rows: the rows that a piece becomes
shared     PostgreSQL as such an end (an extra); shared_rows: the rows that a piece becomes
sharded    several databases as such an end
mover      the move itself: it can be interrupted anywhere, and goes on where it was
"""

from ldp_server.moving.mover import Moved, move, open_end

__all__ = ["Moved", "move", "open_end"]

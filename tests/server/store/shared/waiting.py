"""Waiting for what PostgreSQL says of itself, and not for time."""

import time

PATIENCE = 60.0


def wait_for(connection, query, *values):
    """Return the first row once there is one whose first column is true."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        row = connection.execute(query, values).fetchone()
        if row is not None and row[0]:
            return row
        time.sleep(0.01)
    raise AssertionError("it never came true")


WAITS_FOR_A_LOCK = "SELECT true FROM pg_locks WHERE NOT granted AND locktype = %s LIMIT 1"
WAITS_FOR_A_STANDBY = (
    "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'hearsay' LIMIT 1"
)

"""Waiting for what PostgreSQL says of itself, and not for time."""

import threading
import time

PATIENCE = 300.0


def wait_for(connection, query, *values):
    """Return the first row once there is one whose first column is true."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        row = connection.execute(query, values).fetchone()
        if row is not None and row[0]:
            return row
        time.sleep(0.01)
    raise AssertionError("it never came true")


def end_session(connection, pid):
    """End a session of the same database's as an administrator does, and wait until it is gone with its locks."""
    connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
    wait_for(connection, "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = %s", pid)


WAITS_FOR_A_LOCK = "SELECT true FROM pg_locks WHERE NOT granted AND locktype = %s LIMIT 1"
WAITS_FOR_A_STANDBY = (
    "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'hearsay' LIMIT 1"
)


def until_commits_wait(connect, side):
    """Return when commits wait for a standby: a process of the server's tells its backends to, in its own time.

    There has to be a table `probes` with one number a row.
    """
    done = threading.Event()
    with connect(application_name="probe") as probe:

        def commit():
            while not done.is_set():
                probe.execute("INSERT INTO probes VALUES (1)")

        committing = threading.Thread(target=commit)
        committing.start()
        try:
            waits = WAITS_FOR_A_STANDBY.replace("hearsay", "probe")
            (waiting,) = wait_for(side, waits)
        finally:
            done.set()
        side.execute("SELECT pg_cancel_backend(%s)", (waiting,))
        committing.join()

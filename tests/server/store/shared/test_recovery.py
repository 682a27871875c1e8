"""Recovery to a point in time: the disk of the server is lost, a base backup and an archive of its log are there."""

import shutil

import numpy as np
import psycopg
import pytest

from ldp_client.collection import Collection
from ldp_client.protocol.domain import Integers
from ldp_server.arrays.packing import pack
from ldp_server.oracles import oracle_for
from ldp_server.store import Admission, AppendOutcome, NewCollection
from ldp_server.store.engines import open_store
from ldp_server.worker.period_counts import PeriodCounter
from tests.server.postgres import private_postgres
from tests.server.store.contract.batches import a_batch, held
from tests.server.store.shared.waiting import wait_for

STORED, DUPLICATE, USED = AppendOutcome.STORED, AppendOutcome.DUPLICATE, AppendOutcome.TOKEN_USED


@pytest.fixture
def collection():
    return Collection.create(
        "How many?", Integers(1, 40), "linear-hash", "2", opens=0, closes=1 << 33, parameters={"q": 3, "t": 4}
    )


class Site:
    """A server with an archive of its write-ahead log, and a base backup, each in a folder beside it."""

    def __init__(self, server):
        self.server = server
        self.archive, self.base = server.root / "archive", server.root / "base"
        self.archive.mkdir()
        shutil.chown(self.archive, *owner_of(server.root))
        with psycopg.connect(server.address(), autocommit=True) as side:
            side.execute("ALTER SYSTEM SET archive_mode = on")
            side.execute(f"ALTER SYSTEM SET archive_command = 'cp %p {self.archive}/%f'")
        server.stop()
        server.start()

    def restored(self, other, *settings):
        """Put base backup and archive in the place of another server's data, and start it: as on a new machine."""
        other.stop()
        shutil.rmtree(other.data)
        shutil.copytree(self.base, other.data)
        (other.data / "standby.signal").unlink()
        (other.data / "recovery.signal").touch()
        with (other.data / "postgresql.auto.conf").open("a") as file:
            file.write(f"archive_mode = off\nrestore_command = 'cp {self.archive}/%f %p'\n")
            file.write("recovery_target_action = promote\nprimary_conninfo = ''\n" + "\n".join(settings) + "\n")
        for path in (other.data, *other.data.rglob("*")):
            shutil.chown(path, *owner_of(other.root))
        other.start()
        with psycopg.connect(other.address(), autocommit=True) as side:
            wait_for(side, "SELECT 1 WHERE NOT pg_is_in_recovery()")


def owner_of(path):
    found = path.stat()
    return found.st_uid, found.st_gid


def reports(collection, number, count, token=None):
    coins, randomizer = np.random.default_rng(), collection.randomizer
    drawn = coins.integers(0, randomizer.bound, (count, 5), dtype=np.uint64)
    return [a_batch(number, pack(row, randomizer.report_bytes), token=token) for row in drawn]


def counted(log, number, collection, folder):
    """The counts as an answerer makes them, with its checkpoint; and those of the batches themselves."""
    folder.mkdir(exist_ok=True)
    counter, bare = PeriodCounter(log, folder), oracle_for(collection)
    counts = counter.load(log.period(number), collection)
    counter.advance(counts, None)
    counter.save(counts)
    for batch in held(log, number):
        bare.accumulate(batch.payload)
    return counts.oracle.to_bytes(), bare.to_bytes()


@pytest.mark.slow
def test_back_to_a_point_in_time_and_to_the_end_of_the_archive(tmp_path, collection):
    with private_postgres() as lost, private_postgres() as new:
        site, states = Site(lost), tmp_path / "states"
        store = open_store(lost.address(), tmp_path)
        store.prepare()
        log = store.writer()
        admission = Admission("linkable-token")
        number = log.add(NewCollection(collection.id, collection.spec_bytes, False, admission, 1)).number
        early = reports(collection, number, 20)
        log.append(early)
        lost.copy_to(site.base, lost)
        middle, late = reports(collection, number, 20), reports(collection, number, 20)
        token = reports(collection, number, 1, b"t" * 16)
        log.append(middle)
        with psycopg.connect(lost.address(), autocommit=True) as side:
            side.execute("SELECT pg_create_restore_point('before the accident')")
            log.append([*late, *token])
            log.finish(number)
            counted(log, number, collection, states)  # a checkpoint of what is about to be lost
            (ended,) = side.execute("SELECT pg_walfile_name(pg_switch_wal())").fetchone()
            wait_for(side, "SELECT 1 FROM pg_stat_archiver WHERE last_archived_wal >= %s", ended)
        unarchived = reports(collection, number, 3)
        assert set(log.append(unarchived)) == {STORED}
        log.close()
        lost.crash()
        for settings, there, gone in (
            (["recovery_target_name = 'before the accident'"], [*early, *middle], [*late, *token, *unarchived]),
            ([], [*early, *middle, *late, *token], unarchived),
        ):
            site.restored(new, *settings)
            check(new, tmp_path, collection, number, there)
            log = open_store(new.address(), tmp_path).writer()
            if gone:
                assert log.append(gone) == [STORED] * len(gone)  # what was lost is lost, and would be taken again
            assert log.append([a_batch(number, b"x", token=b"t" * 16)]) == [USED]
            log.close()


def check(server, folder, collection, number, there):
    """It holds these batches and no others, and counts that were of more are not used."""
    log = open_store(server.address(), folder).writer()
    assert {b.batch_id: b.payload for b in held(log, number)} == {b.batch_id: b.payload for b in there}
    assert log.append(there) == [DUPLICATE] * len(there)
    log.finish(number)
    log.check()
    found, expected = counted(log, number, collection, folder / "states")
    assert found == expected
    log.close()

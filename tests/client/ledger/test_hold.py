"""What a storage does around a fork."""

import threading

import pytest

from ldp_client.ledger.database import Storage


def free_for_another_thread(lock):
    """Whether a thread that is not this one gets the lock."""
    got = []

    def attempt():
        got.append(lock.acquire(blocking=False))
        if got[0]:
            lock.release()

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return got[0]


@pytest.fixture
def storage(tmp_path):
    storage = Storage(tmp_path)
    with storage.charging():
        pass
    with storage.working():
        pass
    yield storage
    storage.close()


def test_nobody_uses_the_file_from_before_a_fork_until_after_it(storage):
    locks = storage._front.lock, storage._back.lock
    storage.hold()
    assert [free_for_another_thread(lock) for lock in locks] == [False, False]
    assert (storage._front.db, storage._back.db) == (None, None)
    storage.let_go()
    assert [free_for_another_thread(lock) for lock in locks] == [True, True]


def test_a_fork_amid_one_s_own_transaction_leaves_it_open(storage):
    with storage.charging() as (db, state):
        state.changed = True
        storage.hold()
        assert db.in_transaction and storage._front.db is db
        storage.let_go()
    with storage.reading() as (_, state):
        assert state.generation == 1

"""Who comes while the writer thread ends: nobody is left waiting."""

import os

from ldp_server.store import GroupCommit, Submission, Ticket
from ldp_server.store.errors import Removed


class Gone:
    """A log whose file was removed."""

    def append(self, submissions):
        raise Removed("it is gone")

    def tend(self):
        pass


def ticket():
    return Ticket(Submission(1, os.urandom(16), bytes(16), b"abc"), 1, lambda _: None)


def test_who_comes_while_the_last_group_is_delivered_gets_its_error_too():
    first, second = ticket(), ticket()
    delivered = []

    def deliver(group, _):
        delivered.append(group)
        if group == [first]:
            commit.submit(second)

    commit = GroupCommit(Gone(), lambda _, payloads: [True] * len(payloads), deliver)
    commit.submit(first)
    commit.start()
    commit._thread.join(60)
    assert delivered == [[first], [second]]
    assert str(first.error) == "it is gone"
    assert second.error is first.error is commit.failure

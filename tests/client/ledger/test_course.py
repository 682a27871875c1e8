"""How far a ledger has come: what is refused, what is remembered, and when the witness is written."""

import pytest

from ldp_client.errors import StorageError
from ldp_client.ledger.course import Course
from ldp_client.ledger.schema import Damaged, State
from ldp_client.ledger.witness import LedgerProgress

ONE, OTHER = b"1" * 16, b"2" * 16


class Remembering:
    """A witness in memory."""

    def __init__(self, progress=None):
        self.progress, self.written, self.failing = progress, [], False

    def read(self):
        return self.progress

    def write(self, progress, *, durable=False):
        if self.failing:
            raise StorageError("no")
        self.written.append((progress.generation, durable))


def state(generation, instance=ONE, recent=None):
    made = State.__new__(State)
    made.instance, made.generation, made.recent = instance, generation, recent
    return made


@pytest.fixture
def witness():
    return Remembering()


@pytest.fixture
def course(witness):
    return Course(witness)


def test_only_the_first_charge_is_flushed_to_the_disk(course, witness):
    for generation in (1, 2, 3):
        course.after_charge(state(generation))
    assert witness.written == [(1, True), (2, False), (3, False)]
    assert course.seen == LedgerProgress(ONE, 3)


def test_a_charge_s_time_is_remembered_after_its_commit(course):
    course.after_charge(state(1))
    course.after_charge(state(2, recent=(1, 50, 0)))
    assert course.recent == (1, 50, 0)


def test_threads_report_in_any_order(course):
    course.after_charge(state(5))
    course.after_charge(state(4))
    assert course.seen == LedgerProgress(ONE, 5)
    course.recent = (1, 50, 0)
    course._look_ahead(LedgerProgress(ONE, 6))
    assert (course.seen.generation, course.recent) == (6, (1, 50, 0))
    course._look_ahead(LedgerProgress(OTHER, 2))  # a reset
    assert (course.seen, course.recent) == (LedgerProgress(OTHER, 2), None)


@pytest.mark.parametrize(("remembered", "written"), [(None, [(7, True)]), (6, [(7, True)]), (7, []), (8, [])])
def test_a_late_witness_is_brought_up_to_date_by_a_writer(course, witness, remembered, written):
    progress = None if remembered is None else LedgerProgress(ONE, remembered)
    course.begin(state(7), progress, writes=True)
    assert witness.written == written
    course.before_charge()
    assert witness.written == written


def test_a_reader_leaves_a_late_witness_to_the_next_charge(course, witness):
    course.begin(state(7), LedgerProgress(ONE, 6), writes=False)
    assert witness.written == []
    for _ in range(2):
        course.before_charge()
    assert witness.written == [(7, True)]
    course.begin(state(7), LedgerProgress(ONE, 7), writes=False)
    course.before_charge()
    assert len(witness.written) == 1


def test_a_witness_that_cannot_be_written_stops_the_next_charge_only(course, witness):
    witness.failing = True
    course.after_charge(state(1))
    with pytest.raises(StorageError):
        course.before_charge()
    with pytest.raises(StorageError):
        course.before_charge()
    witness.failing = False
    course.before_charge()
    assert witness.written == [(1, True)]


def test_a_ledger_behind_what_was_seen_is_refused(course):
    seen = LedgerProgress(ONE, 5)
    course.check(state(5), seen, alone=True)
    course.check(state(6), seen, alone=True)
    with pytest.raises(Damaged, match="older copy"):
        course.check(state(4), seen, alone=True)


def test_another_instance_is_compared_with_the_witness_by_a_writer(course, witness):
    course.recent = (1, 50, 0)
    witness.progress = LedgerProgress(OTHER, 3)
    course.check(state(3, OTHER), LedgerProgress(ONE, 5), alone=True)
    assert course.recent is None
    with pytest.raises(Damaged, match="older copy"):
        course.check(state(2, OTHER), LedgerProgress(ONE, 5), alone=True)
    course.check(state(2, OTHER), LedgerProgress(ONE, 5), alone=False)
    course.check(state(2, OTHER), Course(witness).seen, alone=True)  # nothing was seen yet


@pytest.mark.parametrize(
    ("generation", "progress", "why"),
    [
        (1, None, "its witness is missing"),
        (1, LedgerProgress(OTHER, 1), "belongs to another ledger"),
        (1, LedgerProgress(ONE, 2), "older copy"),
        (0, None, None),
        (2, LedgerProgress(ONE, 2), None),
        (3, LedgerProgress(ONE, 2), None),
    ],
)
def test_a_ledger_and_its_witness(course, generation, progress, why):
    if why is None:
        course.compare(state(generation), progress)
        return
    with pytest.raises(Damaged, match=why):
        course.compare(state(generation), progress)


def test_after_a_reset_everything_begins_anew(course):
    assert course.seen == LedgerProgress(b"", 0)
    course.after_charge(state(5))
    course.forget()
    assert course.seen == LedgerProgress(b"", 0)

"""The worker's questions and answers: read back as they were sent, and every question has its handler in the child."""

import asyncio
import io

import pytest

from ldp_client.errors import (
    Cancelled,
    InvalidSpec,
    LdpError,
    PolicyRefused,
    ServerRefused,
    StorageError,
    Unavailable,
)
from ldp_server.oracles.base import TooFewReports, Unsupported
from ldp_server.store.errors import Corrupt, DiskFull
from ldp_server.worker import messages
from ldp_server.worker.__main__ import Child
from ldp_server.worker.messages import Failure, read_answer, read_question, write_message

QUESTIONS = [
    messages.AskEstimate(1),
    messages.AskNumbers(6),
    messages.AskAttributes(7),
    messages.AskTables(14),
    messages.AskRelations(15),
    messages.AskSummarise(2),
    messages.AskAdvance(3, 0.25),
    messages.AskCheckpoint(4),
    messages.AskDecode(5, 1000, 0.2),
    messages.AskPeriods(8),
    messages.AskCounts(9),
    messages.AskTrend(10),
    messages.AskChange(11),
    messages.AskCompare(12, 13),
]
ANSWERS = [
    messages.Done(),
    messages.WorkerSummary(10, 2, 0.5, True, False, 30),
    messages.Advanced(7, 0),
    messages.CheckpointWritten(7),
    messages.PeriodsCounted(7, 100, 102, True),
    messages.Progress("counting", 0.5),
    Failure("Corrupt", "text", "reason"),
]


def test_the_examples_are_all_there_is():
    assert {type(question).__name__ for question in QUESTIONS} == set(messages.QUESTIONS)
    assert {type(answer).__name__ for answer in ANSWERS} == set(messages.ANSWERS)


def read_answers(data):
    """Read every answer in `data`, as the parent does."""

    async def read():
        pipe, found = asyncio.StreamReader(), []
        pipe.feed_data(data)
        pipe.feed_eof()
        while not pipe.at_eof():
            found.append(await read_answer(pipe))
        return found

    return asyncio.run(read())


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: type(question).__name__)
def test_a_question_comes_through_the_pipe_as_it_was(question):
    pipe = io.BytesIO(write_message(question, b"body") + write_message(question))
    assert read_question(pipe) == (question, b"body")
    assert read_question(pipe) == (question, b"")
    assert read_question(pipe) is None


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_an_answer_comes_through_the_pipe_as_it_was(answer):
    assert read_answers(write_message(answer, b"body") + write_message(answer)) == [(answer, b"body"), (answer, b"")]


def test_a_pipe_that_ends_within_an_answer_is_no_answer():
    with pytest.raises(asyncio.IncompleteReadError):
        read_answers(write_message(ANSWERS[0], b"body")[:-1])


class Broken:
    """Counts that cannot be had."""

    def __init__(self, error):
        self.error = error

    def get(self, number, asked=None):
        raise self.error

    advance = lines = each = get

    def clear(self):
        pass

    def checkpoint(self, number):
        raise self.error


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: type(question).__name__)
def test_every_question_has_a_handler(question):
    child = Child(Broken(InvalidSpec("no such collection")), lambda *_: None)
    assert child.answer(question, b"") == (Failure("InvalidSpec", "no such collection"), b"")


@pytest.mark.parametrize(
    ("raised", "kind", "text"),
    [
        (InvalidSpec("which?"), InvalidSpec, "which?"),
        (Unsupported("not this mechanism"), Unsupported, "not this mechanism"),
        (TooFewReports("none yet"), TooFewReports, "none yet"),
        (StorageError("gone"), StorageError, "gone"),
        (Corrupt("damaged"), Corrupt, "damaged"),
        (DiskFull("full"), DiskFull, "full"),
        (Unavailable("later"), Unavailable, "later"),
        (Cancelled("stopped"), Cancelled, "stopped"),
        (MemoryError(), Unavailable, "limits.worker_memory_mb"),
        (PolicyRefused("a kind the parent does not expect"), Unavailable, "unexpected error"),
        (ZeroDivisionError("SECRET"), Unavailable, "unexpected error"),
    ],
)
def test_an_error_of_the_child_is_raised_by_the_parent(raised, kind, text, capfd):
    child = Child(Broken(raised), lambda *_: None)
    failure, _ = child.answer(messages.AskEstimate(1), b"")
    sent = write_message(failure)
    [(received, _)] = read_answers(sent)
    error = received.error()
    assert type(error) is kind
    assert text in str(error)
    assert b"SECRET" not in sent
    assert ("Traceback" in capfd.readouterr().err) is not isinstance(raised, LdpError | MemoryError)


def test_a_refusal_keeps_its_reason():
    error = Failure.of(ServerRefused("BAD_STATE", "counts of another collection")).error()
    assert isinstance(error, ServerRefused)
    assert (error.reason, error.detail) == ("BAD_STATE", "counts of another collection")

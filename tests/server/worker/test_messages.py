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
from ldp_server.store.errors import Corrupt, DiskFull
from ldp_server.worker import messages
from ldp_server.worker.__main__ import Child
from ldp_server.worker.frames import read_frame, read_frame_async, write_frame
from ldp_server.worker.messages import Failure, Unsupported, read_answer, read_question, to_header

QUESTIONS = [
    messages.AskEstimate(1),
    messages.AskSummarise(2),
    messages.AskAdvance(3, 0.25),
    messages.AskCheckpoint(4),
    messages.AskDecode(5, 1000),
]
ANSWERS = [
    messages.Done(),
    messages.WorkerSummary(10, 2, 0.5, True, False, 30),
    messages.Advanced(7, 0),
    messages.CheckpointWritten(7),
    messages.Progress("counting", 0.5),
    Failure("Corrupt", "text", "reason"),
]


def test_the_examples_are_all_there_is():
    assert {type(question).__name__ for question in QUESTIONS} == set(messages.QUESTIONS)
    assert {type(answer).__name__ for answer in ANSWERS} == set(messages.ANSWERS)


@pytest.mark.parametrize("message", [*QUESTIONS, *ANSWERS], ids=lambda message: type(message).__name__)
def test_a_message_comes_through_the_pipe_as_it_was(message):
    frame = write_frame(to_header(message), b"body")
    header, body = read_frame(io.BytesIO(frame))
    read = read_question if message in QUESTIONS else read_answer
    assert (read(header), body) == (message, b"body")

    async def through_a_stream():
        stream = asyncio.StreamReader()
        stream.feed_data(frame)
        stream.feed_eof()
        return await read_frame_async(stream)

    assert asyncio.run(through_a_stream()) == (header, body)


def test_the_end_of_the_pipe_is_no_frame():
    assert read_frame(io.BytesIO()) is None


class Broken:
    """Counts that cannot be had."""

    def __init__(self, error):
        self.error = error

    def get(self, number, *, seconds=None):
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
    error = read_answer(to_header(failure)).error()
    assert type(error) is kind
    assert text in str(error)
    assert "SECRET" not in str(to_header(failure))
    assert ("Traceback" in capfd.readouterr().err) is not isinstance(raised, LdpError | MemoryError)


def test_a_refusal_keeps_its_reason():
    error = Failure.of(ServerRefused("BAD_STATE", "counts of another collection")).error()
    assert isinstance(error, ServerRefused)
    assert (error.reason, error.detail) == ("BAD_STATE", "counts of another collection")

"""Asks one server questions from a file, several at a time: `python -m benchmarks.analyst.asking`.

The bytes of the question and of the answers are not looked at, so that the client takes as little of the processor as
it can. It prints how many questions a second were answered.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import grpc

AT_ONCE = 16
"""Calls that are open at a time."""


async def rate(target: str, questions: Sequence[bytes], token: str) -> float:
    """Return how many questions a second are answered."""
    metadata = (("authorization", f"Bearer {token}"),)
    waiting = iter(questions)
    async with grpc.aio.insecure_channel(target, [("grpc.enable_http_proxy", 0)]) as channel:
        ask = channel.unary_unary("/ldp.v1.Analyst/Estimate", None, None)
        await ask(questions[0], metadata=metadata)  # connected and warm

        async def some() -> None:
            for question in waiting:
                await ask(question, metadata=metadata)

        started = time.perf_counter()
        await asyncio.gather(*(some() for _ in range(AT_ONCE)))
        return len(questions) / (time.perf_counter() - started)


def read_questions(data: bytes, count: int) -> list[bytes]:
    """Return the questions of a file: each after its length, in four bytes; repeated until there are enough."""
    found, place = [], 0
    while place < len(data):
        size = int.from_bytes(data[place : place + 4], "little")
        found.append(data[place + 4 : place + 4 + size])
        place += 4 + size
    return [found[number % len(found)] for number in range(count)]


def main() -> None:
    """Ask as the arguments say: the server, files with the questions and the token, and how many questions."""
    target, questions, token, count = sys.argv[1:]
    asked = read_questions(Path(questions).read_bytes(), int(count))
    sys.stdout.write(f"{asyncio.run(rate(target, asked, Path(token).read_text().strip()))}\n")


if __name__ == "__main__":
    main()

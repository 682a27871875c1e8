"""Asks one server the same question again and again, several at a time: `python -m benchmarks.analyst.asking`.

The bytes of the question and of the answers are not looked at, so that the client takes as little of the processor as
it can. It prints how many questions a second were answered.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import grpc

AT_ONCE = 16
"""As many calls as one client may have open at a time and more would only wait."""


async def rate(target: str, question: bytes, token: str, questions: int) -> float:
    """Return how many questions a second are answered."""
    options = [("grpc.enable_http_proxy", 0)]
    metadata = (("authorization", f"Bearer {token}"),)
    async with grpc.aio.insecure_channel(target, options) as channel:
        ask = channel.unary_unary("/ldp.v1.Analyst/Estimate")
        await asyncio.gather(*(ask(question, metadata=metadata) for _ in range(AT_ONCE)))  # connected and warm

        async def some(share: int) -> None:
            for _ in range(share):
                await ask(question, metadata=metadata)

        started = time.perf_counter()
        await asyncio.gather(*(some(questions // AT_ONCE) for _ in range(AT_ONCE)))
        return questions // AT_ONCE * AT_ONCE / (time.perf_counter() - started)


def main() -> None:
    """Ask as the arguments say: the server, files with the question and the token, and how many questions."""
    target, question, token, questions = sys.argv[1:]
    found = asyncio.run(rate(target, Path(question).read_bytes(), Path(token).read_text().strip(), int(questions)))
    sys.stdout.write(f"{found}\n")


if __name__ == "__main__":
    main()

"""`ldp-server demo --web`: two more questions whose charts look different, and the pages over all of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ldp_client.collection import Collection
from ldp_client.errors import Unavailable
from ldp_client.mechanisms import composed_response, hierarchy
from ldp_client.protocol.domain import Attributes, Domain, Integers
from ldp_server.child import safe_command, safe_environment

__all__ = ["PAGES", "further_questions", "show_pages"]

PAGES = "127.0.0.1:7980"
_MINUTES = Integers(0, 600)
_HABITS = Attributes(("dark theme", "two monitors", "screen reader", "keyboard only", "beta channel", "spell check"))
_SHARES = (0.6, 0.35, 0.03, 0.2, 0.1, 0.75)

Indexes = npt.NDArray[np.uint64]


def further_questions(users: int, epsilon: str, seed: int, opens: int) -> list[tuple[Collection, Indexes]]:
    """Return a question about a number and one about habits, with what the simulated users hold."""
    coins = np.random.default_rng(seed + 1)
    minutes = coins.gamma(2.5, 45.0, users).clip(0, _MINUTES.count - 1).astype(np.uint64) + np.uint64(1)
    held = coins.random((users, len(_SHARES))) < np.array(_SHARES)
    habits = (held @ (1 << np.arange(len(_SHARES)))).astype(np.uint64)
    asked: list[tuple[str, Domain, str, Mapping[str, int], Indexes]] = [
        (
            "For how many minutes did you use the app yesterday?",
            _MINUTES,
            "hierarchy",
            hierarchy.design(epsilon, _MINUTES.count),
            minutes,
        ),
        (
            "Which of these do you use?",
            _HABITS,
            "composed-response",
            composed_response.design(epsilon, len(_SHARES)),
            habits,
        ),
    ]
    found = []
    for text, domain, name, parameters, indexes in asked:
        made = Collection.create(text, domain, name, epsilon, opens=opens, closes=opens + 7200, parameters=parameters)
        found.append((made, indexes))
    return found


def show_pages(data: Path, listen: str, truth: Mapping[str, Mapping[Any, int]]) -> None:
    """Serve the pages of a server, with the truth that only a demo knows, until Ctrl-C."""
    file = data.parent / "truth.json"
    file.write_text(json.dumps(truth), encoding="utf-8")
    arguments = ("web", "--data", str(data), "--listen", listen, "--link", "--until-stdin-closes", "--truth", str(file))
    command = safe_command("ldp_server", *arguments)
    with subprocess.Popen(  # noqa: S603 - our own program
        command,
        stdin=subprocess.PIPE,
        env=safe_environment({"LDP_SERVER": ""}),
        start_new_session=True,  # Ctrl-C is for this process; it stops the pages
    ) as pages:
        try:
            code = pages.wait()
        except KeyboardInterrupt:
            sys.stderr.write("\n")
            code = 0
        finally:
            if pages.stdin is not None:
                pages.stdin.close()
    if code:
        raise Unavailable("the pages ended: the line above says why")

"""Where a command's result goes: a table or JSON on standard output, and a page in the folder of --report."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldp_server.answers.to_json import dump
from simulator.report.page import Report

__all__ = ["OutputOptions", "asked_command"]


@dataclass(frozen=True)
class OutputOptions:
    """--json and --report."""

    as_json: bool = False
    report: Path | None = None

    def deliver(
        self, shapes: Iterable[Mapping[str, Any]], show: Callable[[], None], page: Callable[[], Report]
    ) -> None:
        """Print the objects as JSON, one a line, or call `show`; call `page` only if a report is wanted."""
        if self.as_json:
            sys.stdout.writelines(dump(shape) + "\n" for shape in shapes)
        else:
            show()
        if self.report is not None:
            sys.stderr.write(f"report: {page().write(self.report)}\n")


def asked_command() -> str:
    """Return the command line, as one would type it again."""
    return shlex.join([Path(sys.argv[0]).name or "ldp-simulate", *sys.argv[1:]])

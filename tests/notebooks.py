"""Runs a notebook's cells in order, as Jupyter does, in the process that this module is started in.

    python -m tests.notebooks examples/analysis.ipynb           runs it, and prints what each cell shows as JSON
    python -m tests.notebooks --code examples/analysis.ipynb    prints its code, for the type checker

It is no Jupyter: nbclient and ipykernel would bring 31 packages into the tests for a kernel that the cells do not use.
What a cell shows is what Jupyter would ask its last expression for: an SVG, HTML, or else its repr.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

__all__ = ["code_of", "run"]


def code_of(path: Path) -> list[tuple[str, str]]:
    """The id and the code of each cell with code."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return [(cell["id"], "".join(cell["source"])) for cell in cells if cell["cell_type"] == "code"]


def run(path: Path) -> dict[str, dict[str, str]]:
    """Run all cells in one namespace; what each printed and showed, by its id."""
    sys.path.insert(0, str(path.parent.resolve()))
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = {}
    for name, code in code_of(path):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            value = _cell(code, f"<cell {name}>", names)
        shown[name] = {"printed": printed.getvalue(), **_display(value)}
    return shown


def _cell(code: str, file: str, names: dict[str, Any]) -> Any:
    tree = ast.parse(code, file)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, file, "exec"), names)
    return eval(compile(ast.Expression(last.value), file, "eval"), names) if isinstance(last, ast.Expr) else None


def _display(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    for kind in ("svg", "html"):
        show = getattr(value, f"_repr_{kind}_", None)
        if show is not None and (made := show()) is not None:
            return {kind: made}
    return {"text": repr(value)}


if __name__ == "__main__":
    if sys.argv[1] == "--code":
        sys.stdout.write("\n\n".join(code for _, code in code_of(Path(sys.argv[2]))))
    else:
        sys.stdout.write(json.dumps(run(Path(sys.argv[1]))))

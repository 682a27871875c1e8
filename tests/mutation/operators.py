"""The mutants of a module: each is one small change of its source text.

A mutant replaces the text of one node of the syntax tree, so that all other lines keep their numbers. Not mutated:
docstrings, annotations, decorators, `__all__`, blocks under TYPE_CHECKING, the texts of errors and logs, and the
instances that mechanisms list for the tests.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Mutant", "mutants"]

COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}
SYMMETRIC = {"min", "max", "gcd", "lcm", "compare_digest"}
"""Functions that give the same for their arguments in every order."""
EXAMPLES = "examples"
"""A method with this name lists instances for the tests: any others would be as good."""
SPEAKERS = {"debug", "info", "warning", "error", "exception", "warn"}


@dataclass(frozen=True)
class Mutant:
    """One change: the text from `start` to `end` becomes `text`."""

    file: str
    line: int
    last: int
    start: int
    end: int
    kind: str
    was: str
    text: str

    @property
    def key(self) -> str:
        """A name that stays as long as the file does."""
        return f"{self.file}:{self.line}:{hashlib.sha256(repr(self).encode()).hexdigest()[:10]}"

    def apply(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]


class _Finder:
    """Walks a module's tree and yields its mutants."""

    def __init__(self, file: str, source: str) -> None:
        self.file, self.source = file, source
        self.offsets = [0]
        for line in source.splitlines(keepends=True):
            self.offsets.append(self.offsets[-1] + len(line))
        self.lines = source.splitlines(keepends=True)

    def _offset(self, line: int, column: int) -> int:
        """The place in the text: columns of the tree are counted in bytes."""
        return self.offsets[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def _make(self, node: ast.AST, kind: str, text: str) -> Mutant:
        start = self._offset(node.lineno, node.col_offset)
        end = self._offset(node.end_lineno, node.end_col_offset)
        return Mutant(self.file, node.lineno, node.end_lineno, start, end, kind, self.source[start:end], text)

    def _expression(self, node: ast.expr, kind: str, new: ast.expr) -> Mutant:
        return self._make(node, kind, f"({ast.unparse(new)})")

    def walk(self, node: ast.AST) -> Iterator[Mutant]:
        yield from self.here(node)
        for child in self.children(node):
            yield from self.walk(child)

    def children(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes below that are code: no annotation, docstring, decorator, text of an error or log."""
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_comment", "type_params", "format_spec"):
                continue
            nodes = [n for n in (value if isinstance(value, list) else [value]) if isinstance(n, ast.AST)]
            for child in nodes:
                if not _is_text(child) and not _is_listing(child):
                    yield from [] if _speaks(node, name) else [child]

    def here(self, node: ast.AST) -> Iterator[Mutant]:
        handler = getattr(self, f"_{type(node).__name__}", None)
        if handler:
            yield from handler(node)

    # Expressions.

    def _Compare(self, node: ast.Compare) -> Iterator[Mutant]:
        for index, operator in enumerate(node.ops):
            for new in COMPARISONS[type(operator)]:
                ops = [*node.ops[:index], new(), *node.ops[index + 1 :]]
                yield self._expression(node, "comparison", ast.Compare(node.left, ops, node.comparators))

    def _BinOp(self, node: ast.BinOp) -> Iterator[Mutant]:
        new = ARITHMETIC.get(type(node.op))
        if new:
            yield self._expression(node, "arithmetic", ast.BinOp(node.left, new(), node.right))

    def _UnaryOp(self, node: ast.UnaryOp) -> Iterator[Mutant]:
        if isinstance(node.op, ast.Not):
            yield self._expression(node, "boolean", node.operand)
        elif isinstance(node.op, ast.USub):
            yield self._expression(node, "arithmetic", node.operand)

    def _BoolOp(self, node: ast.BoolOp) -> Iterator[Mutant]:
        new = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield self._expression(node, "boolean", ast.BoolOp(new, node.values))

    def _Constant(self, node: ast.Constant) -> Iterator[Mutant]:
        value = node.value
        if isinstance(value, bool):
            yield self._expression(node, "constant", ast.Constant(not value))
        elif isinstance(value, int | float):
            for new in (value + 1, value - 1):
                yield self._expression(node, "constant", ast.Constant(new))
        elif isinstance(value, bytes):
            yield self._expression(node, "constant", ast.Constant(b"X" + value[1:] if value[:1] != b"X" else b"Y"))
        elif isinstance(value, str):
            yield self._expression(node, "constant", ast.Constant("X" + value[1:] if value[:1] != "X" else "Y"))

    def _Call(self, node: ast.Call) -> Iterator[Mutant]:
        if _is_log(node):
            return
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        plain = [a for a in node.args if not isinstance(a, ast.Starred)]
        if len(plain) == len(node.args) and (name not in SYMMETRIC or node.keywords):
            for i in range(len(plain) - 1):
                if ast.dump(plain[i]) != ast.dump(plain[i + 1]):
                    args = [*plain[:i], plain[i + 1], plain[i], *plain[i + 2 :]]
                    yield self._expression(node, "swapped arguments", ast.Call(node.func, args, node.keywords))
        if name in NAMES:
            yield self._make(node.func, "function", _renamed(node.func, NAMES[name]))

    def _IfExp(self, node: ast.IfExp) -> Iterator[Mutant]:
        yield from self._condition(node.test)

    def _comprehension(self, node: ast.comprehension) -> Iterator[Mutant]:
        for test in node.ifs:
            yield from self._condition(test)

    # Statements.

    def _condition(self, test: ast.expr) -> Iterator[Mutant]:
        """The opposite of a bare condition; comparisons, `not` and and/or have mutants of their own."""
        if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant):
            yield self._expression(test, "boolean", ast.UnaryOp(ast.Not(), test))

    def _If(self, node: ast.If) -> Iterator[Mutant]:
        yield from self._condition(node.test)

    def _While(self, node: ast.While) -> Iterator[Mutant]:
        yield from self._condition(node.test)

    def _Return(self, node: ast.Return) -> Iterator[Mutant]:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield self._make(node, "return value", "return None")

    def _Expr(self, node: ast.Expr) -> Iterator[Mutant]:
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(call, ast.Call) and not _is_log(call):
            yield self._make(node, "removed call", "pass")

    def _Assign(self, node: ast.Assign) -> Iterator[Mutant]:
        if any(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            yield self._make(node, "removed statement", "pass")

    def _AugAssign(self, node: ast.AugAssign) -> Iterator[Mutant]:
        yield self._make(node, "removed statement", "pass")
        new = ARITHMETIC.get(type(node.op))
        if new:
            yield self._make(node, "arithmetic", ast.unparse(ast.AugAssign(node.target, new(), node.value)))

    def _Raise(self, node: ast.Raise) -> Iterator[Mutant]:
        yield self._make(node, "removed statement", "pass")

    def _Delete(self, node: ast.Delete) -> Iterator[Mutant]:
        yield self._make(node, "removed statement", "pass")

    def _Break(self, node: ast.Break) -> Iterator[Mutant]:
        yield self._make(node, "removed statement", "continue")

    def _Continue(self, node: ast.Continue) -> Iterator[Mutant]:
        yield self._make(node, "removed statement", "break")


def _renamed(function: ast.expr, name: str) -> str:
    if isinstance(function, ast.Attribute):
        return ast.unparse(ast.Attribute(function.value, name))
    return name


def _is_text(node: ast.AST) -> bool:
    """A string that stands alone: a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_listing(node: ast.AST) -> bool:
    """`__all__`, imports for type checkers, instances for tests, and the parts of an f-string."""
    if isinstance(node, ast.FunctionDef):
        return node.name == EXAMPLES
    if isinstance(node, ast.Assign):
        return getattr(node.targets[0], "id", "") == "__all__"
    if isinstance(node, ast.If):
        return getattr(node.test, "id", "") == "TYPE_CHECKING"
    return isinstance(node, ast.JoinedStr)


def _is_log(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in SPEAKERS


def _speaks(node: ast.AST, field: str) -> bool:
    """The field holds the words of an error or a log line, which are read by people."""
    if isinstance(node, ast.Raise):
        return field == "exc" and not isinstance(node.exc, ast.Name)
    return isinstance(node, ast.Call) and field != "func" and _is_log(node)


def mutants(file: str, source: str) -> list[Mutant]:
    """All mutants of a module, in the order of its text."""
    found = list(_Finder(file, source).walk(ast.parse(source)))
    return sorted(set(found), key=lambda m: (m.start, m.end, m.kind, m.text))

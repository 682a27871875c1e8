"""The mutants of small sources, and what must not be mutated."""

from __future__ import annotations

import ast

import pytest

from tests.mutation.operators import mutants


def texts(source):
    return [mutant.apply(source) for mutant in mutants("m.py", source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", {"(a <= b)", "(a >= b)"}),
        ("a == b", {"(a != b)"}),
        ("a is None", {"(a is not None)"}),
        ("a in b", {"(a not in b)"}),
        ("a + b", {"(a - b)"}),
        ("a // b", {"(a * b)"}),
        ("a << b", {"(a >> b)"}),
        ("-a", {"(a)"}),
        ("not a", {"(a)"}),
        ("a and b", {"(a or b)"}),
        ("x = 3", {"x = (4)", "x = (2)"}),
        ("x = 0.5", {"x = (1.5)", "x = (-0.5)"}),
        ("x = True", {"x = (False)"}),
        ("x = 'ab'", {"x = ('Xb')"}),
        ("x = b'ab'", {"x = (b'Xb')"}),
        ("x = ''", {"x = ('X')"}),
        ("x = 'X'", {"x = ('Y')"}),
        ("x = f(a, b)", {"x = (f(b, a))"}),
        ("x = f(a, a)", set()),
        ("x = min(a)", {"x = max(a)"}),
        ("x = max(a, b)", {"x = min(a, b)"}),
        ("x = max(a, b, key=c)", {"x = min(a, b, key=c)", "x = (max(b, a, key=c))"}),
        ("x = math.floor(a)", {"x = math.ceil(a)"}),
        ("f()", {"pass"}),
        ("a.b = c", {"pass"}),
        ("x = c", set()),
        ("a += c", {"pass", "a -= c"}),
        ("del a", {"pass"}),
        ("x = a if b else c", {"x = a if (not b) else c"}),
        ("x = [a for a in b if c]", {"x = [a for a in b if (not c)]"}),
    ],
)
def test_the_changes_of_one_line(source, expected):
    assert set(texts(source)) == expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("return a", {"return None"}),
        ("return None", set()),
        ("return", set()),
        ("raise Bad", {"pass"}),
        ("raise Bad('a text', 3)", {"pass"}),
        ("while a: break", {"while (not a): break", "while a: continue"}),
        ("while a: continue", {"while (not a): continue", "while a: break"}),
    ],
)
def test_the_changes_of_a_statement_in_a_function(statement, expected):
    assert set(texts(f"def f():\n    {statement}\n")) == {f"def f():\n    {new}\n" for new in expected}


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring."""',
        "class A:\n    '''Text.'''\n    a: int | None\n    '''Text.'''",
        "__all__ = ['a', 'b']",
        "if TYPE_CHECKING:\n    x = 1",
        "def f(a: 'A | None') -> 'B | None': ...",
        "@cache(1)\ndef f(): ...",
        "log.warning('it failed %s', 1 + 1)",
        "x = f'{a:>3} text'",
        "class A:\n    def examples(cls):\n        return (cls(1, 2), cls(3))",
    ],
)
def test_what_is_not_code_is_not_mutated(source):
    assert texts(source) == []


def test_a_mutant_changes_its_own_node_only_and_keeps_the_number_of_its_line():
    source = "# é\nx = 'é' + g(1)\n\n\ndef f(a):\n    return a\n"
    for mutant in mutants("m.py", source):
        changed = mutant.apply(source)
        ast.parse(changed)
        assert changed != source
        assert [n for n, pair in enumerate(zip(source.split("\n"), changed.split("\n"), strict=True), 1)
                if pair[0] != pair[1]] == [mutant.line]  # fmt: skip


def test_mutants_of_one_module_differ():
    source = "def f(a, b):\n    if a < b + 1:\n        return a < b + 1\n    return 0\n"
    found = mutants("m.py", source)
    assert len({mutant.key for mutant in found}) == len(found) == len(set(texts(source)))

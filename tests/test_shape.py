"""The shape of the source tree: small folders, short functions, one type for one name."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.trees import statements, tree_of

ROOT = Path(__file__).parent.parent
PACKAGES = ("ldp_client", "ldp_server", "simulator", "benchmarks", "tests", "examples")
PRODUCT = ("ldp_client", "ldp_server", "simulator", "benchmarks")
MODULES_IN_A_FOLDER = 15
LINES_OF_A_FUNCTION = 40
PARAMETERS = 8

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sources(packages=PACKAGES):
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "_pb2" not in path.name and "/." not in str(path.relative_to(ROOT)):
                yield path


def is_value_object(node):
    """A dataclass or a named tuple: its fields are its parameters."""
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    bases = [ast.unparse(base) for base in node.bases]
    return any("dataclass" in text for text in decorators) or "NamedTuple" in bases


def functions(tree):
    """Every function with the class it stands in."""
    for node, child in statements(tree):
        if isinstance(child, Function):
            yield child, node if isinstance(node, ast.ClassDef) else None


def parameters(function, owner):
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [argument.arg for argument in named if not (owner and argument.arg in {"self", "cls"})]


def listed_names(docstring):
    """The names that begin a line, before a gap: a list of modules, if most of them are modules."""
    found = [re.match(r" *(\w+(?:, \w+)*)  ", line) for line in docstring.splitlines()[1:]]
    return {name for match in found if match for name in match[1].split(", ")}


def test_a_folder_that_lists_its_modules_lists_all_of_them_and_no_others():
    wrong = {}
    for path in sources(PRODUCT):
        if path.name == "__init__.py":
            docstring = ast.get_docstring(tree_of(path)) or ""
            inside = {one.stem for one in path.parent.iterdir() if one.suffix == ".py" and one != path}
            inside |= {one.parent.name for one in path.parent.glob("*/__init__.py")}
            listed = listed_names(docstring)
            left_out = {name for name in inside if not re.search(rf"\b{name}\b", docstring)}
            if len(listed & inside) >= 2 and (left_out or listed - inside):
                wrong[str(path.relative_to(ROOT))] = left_out, listed - inside
    assert not wrong


def test_no_folder_is_crowded():
    folders = defaultdict(list)
    for path in sources():
        if path.name != "__init__.py":
            folders[path.parent.relative_to(ROOT)].append(path.name)
    crowded = {str(folder): len(names) for folder, names in folders.items() if len(names) > MODULES_IN_A_FOLDER}
    assert not crowded


@pytest.mark.parametrize(
    "package", [pytest.param(one, marks=pytest.mark.long) if one == "tests" else one for one in PACKAGES]
)
def test_functions_are_short_and_take_few_parameters(package):
    wrong = []
    for path in sources((package,)):
        for function, owner in functions(tree_of(path)):
            lines = function.end_lineno - function.lineno + 1
            if lines > LINES_OF_A_FUNCTION:
                wrong.append(f"{path.relative_to(ROOT)}: {function.name} has {lines} lines")
            count = len(parameters(function, owner))
            if count > PARAMETERS and not (owner and is_value_object(owner)):
                wrong.append(f"{path.relative_to(ROOT)}: {function.name} has {count} parameters")
    assert not wrong, "\n".join(wrong)


def test_one_type_for_one_name():
    homes = defaultdict(list)
    for path in sources(PRODUCT):
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(ROOT)))
    twice = {name: paths for name, paths in homes.items() if len(paths) > 1}
    assert not twice

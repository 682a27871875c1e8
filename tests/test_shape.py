"""The shape of the source tree: small folders, short functions, one type for one name."""

from __future__ import annotations

import ast
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

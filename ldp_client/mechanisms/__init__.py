"""The local randomizers, one a module: the privacy-critical lines and nothing else.

A mechanism is found by its name, and nothing lists the mechanisms a second time. The mechanism "linear-hash" is

    linear_hash     a field of the message Mechanism in proto/ldp/v1/spec.proto; its numbers are the parameters
    LinearHash      a class of ldp_client/mechanisms/linear_hash.py
    LinearHashOracle    a class of ldp_server/oracles/linear_hash.py
    randomize       a function of simulator/crowd/linear_hash.py

`MECHANISMS` finds the first of these, `ldp_server.oracles.ORACLES` and `simulator.crowd.CROWDS` the others. Mechanisms
for records lie one folder deeper, in `records` of all three packages. A module is imported when its mechanism is first
asked for: a device needs one or two of them. docs/adding-a-mechanism.md says how to add one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import Final, TypeVar, cast

from ldp_client.mechanisms.base import Randomizer

__all__ = ["FOLDERS", "MECHANISMS", "REPRODUCTIONS", "Registry", "class_name", "module_of"]

FOLDERS: Final = ("", "records.")
"""Where the module of a mechanism may lie, in each of the three packages."""

REPRODUCTIONS: Final = frozenset({"genprot"})
"""Mechanisms that have a number in spec.proto but are not for users; their code is in simulator/reproductions."""

Found = TypeVar("Found")


def class_name(mechanism: str) -> str:
    """Return the name of a mechanism's class: "linear-hash" is LinearHash."""
    return "".join(word.capitalize() for word in mechanism.split("-"))


def module_of(package: str, mechanism: str) -> str:
    """Return the module that a package has for a mechanism; `KeyError` if it has none."""
    modules = (f"{package}.{folder}{mechanism.replace('-', '_')}" for folder in FOLDERS)
    found = next((module for module in modules if find_spec(module) is not None), None)
    if found is None:
        raise KeyError(mechanism)
    return found


class Registry(Mapping[str, Found]):
    """Finds the objects that a package has for each mechanism, by the mechanism's name."""

    def __init__(self, package: str, attribute: Callable[[str], str]) -> None:
        self._package = package
        self._attribute = attribute
        self._found: dict[str, Found] = {}

    def register(self, mechanism: str, found: Found) -> None:
        """Add a mechanism that is not part of the package: a reproduction, or a mechanism of a test."""
        self._found[mechanism] = found

    def __getitem__(self, mechanism: str) -> Found:
        if mechanism not in self._found:
            if mechanism not in _shipped():  # never import a module whose name comes from outside
                raise KeyError(mechanism)
            module = importlib.import_module(module_of(self._package, mechanism))
            self._found[mechanism] = cast(Found, getattr(module, self._attribute(mechanism)))
        return self._found[mechanism]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*_shipped(), *self._found)))

    def __len__(self) -> int:
        return len({*_shipped(), *self._found})


def _shipped() -> list[str]:
    """The names of the mechanisms for users, in the order of spec.proto."""
    from ldp_client.protocol.v1 import spec_pb2  # noqa: PLC0415 - keeps `import ldp_client` light

    kinds = spec_pb2.Mechanism.DESCRIPTOR.oneofs_by_name["kind"].fields
    return [name for name in (kind.name.replace("_", "-") for kind in kinds) if name not in REPRODUCTIONS]


MECHANISMS: Final = Registry[type[Randomizer]](__name__, class_name)

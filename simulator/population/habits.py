"""Users with yes/no fields that go together: four kinds of users, each with shares of its own for every field."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Field, Record, YesNo
from simulator.population.records import RecordPopulation

__all__ = ["habits", "held_fields"]

_KINDS = (0.4, 0.3, 0.2, 0.1)
_SHAPE = 0.7, 2.0


def habits(fields: int, users: int, seed: int) -> RecordPopulation:
    """Return users of so many yes/no fields."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(len(_KINDS), users, p=_KINDS)
    shares = rng.beta(*_SHAPE, (fields, len(_KINDS)))
    held = rng.random((users, fields)) < shares[:, kind].T
    record = Record(tuple(Field(f"f{number}", YesNo(none_is_no=True)) for number in range(1, fields + 1)))
    return RecordPopulation(record, held.T.astype(np.int64))


def held_fields(population: RecordPopulation) -> tuple[tuple[str, ...], npt.NDArray[np.bool_]]:
    """Return the names of the fields, and whether each holds: a line for each user. Whoever gave no answer holds none.

    Every field is of yes and no.
    """
    record = population.record
    held = []
    for field, values in zip(record.fields, population.values, strict=True):
        if not isinstance(field.domain, YesNo):
            raise InvalidSpec(f"the column {field.name!r} is not of yes and no: leave it out (--columns)")
        held.append(values == field.domain.index(True))
    return record.names, np.array(held).T

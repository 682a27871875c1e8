"""One release from beginning to end: the price, the budget, the records, the mechanism, the signature, the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.rounding import fraction_up
from ldp_server.answers.merging.signed import SignedRelease
from ldp_server.answers.to_json import item_json
from ldp_server.curator.draws import Draws
from ldp_server.curator.ledger import CuratorLedger
from ldp_server.curator.people import PeopleFile
from ldp_server.curator.prices import DataSetBudget, price_text
from ldp_server.curator.releases.base import CentralMechanism, Outcome, ReleasedRow
from ldp_server.curator.signing import load_signing_key, sign
from ldp_server.service.admission.key_files import make_key

__all__ = ["KEY_FILE", "ReleaseRequest", "adjacency", "check_own", "create_data_set", "release"]

KEY_FILE = "curator.key"
_FORM = "hearsay-curator-release-1"


@dataclass(frozen=True)
class ReleaseRequest:
    """What is released: of which data set, about which column, and how."""

    data_set: str
    column: str
    mechanism: CentralMechanism
    conversion_delta: Fraction | None = None
    """At which a rho is converted, where the budget is an epsilon."""
    more: tuple[str, ...] = ()
    """Further columns, for a mechanism that reads several; the last one is the label, where there is one."""
    collection: bytes | None = None
    """The collection whose volunteers these are."""

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column, *self.more)


def adjacency(people: int) -> str:
    """Say what the guarantee is about."""
    return (
        f"for replacement: if one of the {people:,} people had another record, the probability of every result changes "
        "by no more than the price says. The number of people is public"
    )


def create_data_set(home: Path, name: str, budget: DataSetBudget, now: int) -> None:
    """Enter a data set in the ledger of a curator's directory. The first one makes the directory and its key."""
    with CuratorLedger(home, create=True) as ledger:
        if ledger.data_sets():
            _check_key(ledger, home, load_signing_key(home / KEY_FILE))
        elif not (home / KEY_FILE).exists():
            make_key(home / KEY_FILE)
        ledger.add(name, budget, now)


def release(
    home: Path, request: ReleaseRequest, data: PeopleFile, draws: Draws, now: int, library: str
) -> SignedRelease:
    """Make, sign, charge and store a release; return it once it is on the disk. What fails charges nothing."""
    key = load_signing_key(home / KEY_FILE)
    mechanism = request.mechanism
    for column in request.columns:
        if column not in data.columns:
            raise InvalidSpec(f"no column {column!r} was read")
    mechanism.check(data.people)
    with CuratorLedger(home) as ledger:
        _check_key(ledger, home, key)
        budget = ledger.data_set(request.data_set).budget
        cost = budget.cost(mechanism.price, request.conversion_delta)
        with ledger.charging(request.data_set, cost, data.fingerprint) as charging:
            spent = ledger.data_set(request.data_set).amount + cost[0]
            outcome = mechanism.run_columns([data.columns[column] for column in request.columns], draws)
            content = {
                "form": _FORM,
                "number": charging.number,
                "previous": charging.before.hex(),
                "made": now,
                "charged": {budget.unit: str(cost[0]), "delta": str(cost[1])},
                "budget": budget.as_dict(),
                "spent": str(spent),
                "library": library,
                **_content(request, data.people, outcome),
                "statement": [*_statement(mechanism, data.people), _budget_line(budget, spent)],
            }
            signed = sign(content, key)
            data.used()
            charging.keep(signed, mechanism.kind, list(request.columns), mechanism.price, now)
    return signed


def _check_key(ledger: CuratorLedger, home: Path, key: Ed25519PrivateKey) -> None:
    """Refuse a key that is not the one of the releases before: their readers would not know it."""
    last = ledger.last_release()
    if last is None:
        return
    try:
        last.signed.check(key.public_key())
    except InvalidSpec:
        raise InvalidSpec(
            f"{home / KEY_FILE} has not signed release {last.number}: it is another key, or the ledger was changed. "
            "Restore the key and the ledger that belong together"
        ) from None


def _content(request: ReleaseRequest, people: int, outcome: Outcome) -> dict[str, Any]:
    """What a release says of its mechanism and what that gave."""
    mechanism = request.mechanism
    return {
        "data_set": request.data_set,
        "people": people,
        "collection": None if request.collection is None else request.collection.hex(),
        "column": ", ".join(request.columns),
        "kind": mechanism.kind,
        "parameters": mechanism.parameters(),
        "price": mechanism.price.as_dict(),
        "note": outcome.note,
        "variance": outcome.variance,
        "rows": [_row(row) for row in outcome.rows],
        "details": dict(outcome.details),
    }


def check_own(home: Path, signed: SignedRelease) -> Ed25519PublicKey:
    """Check a release with the key of this directory, and return the public half."""
    public = load_signing_key(home / KEY_FILE).public_key()
    signed.check(public)
    return public


def _statement(mechanism: CentralMechanism, people: int) -> list[str]:
    price = mechanism.price
    lines = [f"price: {price_text(price)}; {adjacency(people)}"]
    delta = Fraction(1, 10**6) + price.delta
    if price.epsilon is None and price.rho is not None:
        lines.append(f"which is epsilon = {price.epsilon_at(delta):.6g} at delta = {float(delta):.3g}")
    if price.attribute is not None:
        lines.append(
            f"for two records that differ in one attribute: epsilon = {fraction_up(price.attribute):.6g}; in k of "
            "them: at most k times that"
        )
    if mechanism.about:
        lines.append(mechanism.about)
    lines.append("whoever gave these records trusted the operator with them: this protects what is released")
    return lines


def _budget_line(budget: DataSetBudget, spent: Fraction) -> str:
    return f"all releases about these people may cost {budget}; with this one {budget.unit} = {_up(spent)} is spent"


def _up(amount: Fraction) -> str:
    return f"{fraction_up(amount):.6g}"


def _row(row: ReleasedRow) -> dict[str, Any]:
    found: dict[str, Any] = {"item": item_json(row.item)}
    if row.count is not None:
        found["count"] = row.count
    if row.low is not None:
        found |= {"low": row.low, "high": row.high}
    return found

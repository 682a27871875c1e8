"""rules-plan: how many users a rule takes. No server is called."""

from __future__ import annotations

import click

from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers.to_json import to_json
from ldp_server.cli.connection import json_option
from ldp_server.cli.drafting.drafts import read_field
from ldp_server.cli.main import cli
from ldp_server.cli.show import lines, print_json, table
from ldp_server.learning.needed import RuleNeed, users_for_rules

__all__ = ["rules_plan"]

_SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@cli.command("rules-plan")
@click.option(
    "--field",
    "fields",
    required=True,
    multiple=True,
    help='A feature: "age: 0..8", "plan: free, paid"; one, or two of integers.',
)
@click.option("--label", required=True, help='The label: "left: yes", "left: yes/no", "plan: free, paid".')
@click.option("--epsilon", required=True, help="Of a report.")
@click.option("--within", type=_SHARE, default=0.05, show_default=True, help="How much worse than the best rule.")
@click.option("--failure", type=_SHARE, default=0.05, show_default=True, help="The probability that it is worse.")
@json_option
def rules_plan(fields: tuple[str, ...], label: str, epsilon: str, within: float, failure: float, as_json: bool) -> None:
    """Say how many users it takes to find a rule that is nearly as good as the best of its kind."""
    found = users_for_rules([read_field(one) for one in fields], read_field(label), Epsilon(epsilon), within, failure)
    if as_json:
        for one in found:
            print_json(to_json(one))
        return
    columns = [
        ("kind", ""),
        ("rules", "right"),
        ("mechanism", ""),
        ("users, proved", "right"),
        ("users, expected", "right"),
    ]
    rows = [
        [one.kind.value, f"{one.rules:,}", _mechanism(one), f"{one.proved:,}", f"{one.expected:,}"] for one in found
    ]
    title = f"Users for a rule at most {within:g} worse than the best of its kind, with probability {1 - failure:.6g}"
    table(title, columns, rows, f"epsilon {epsilon}; users who have the label and the features")
    lines("Proved: enough whoever the users are. Expected: enough if errors are normal, which they are nearly.")


def _mechanism(one: RuleNeed) -> str:
    return " ".join([one.mechanism, *(f"{name}={value}" for name, value in one.parameters.items())])

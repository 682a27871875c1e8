"""Usage statistics of the editor: one question, answered once, by a randomized report."""

from collections.abc import Set
from pathlib import Path

from ldp_client import Client, Collection, Policy

QUESTION = Collection.load(Path(__file__).with_name("usage.toml"))
POLICY = Policy(max_epsilon="1", budget="2", period="30 days", lifetime="12")


def open_client(collector: str, folder: Path, *, trying_out: bool = False) -> Client:
    """Without `trying_out`, the connection uses TLS and a report waits a random time before it is sent."""
    if trying_out:
        return Client(collector, storage=folder, policy=POLICY, tls=False, delay=0)
    return Client(collector, storage=folder, policy=POLICY)


def on_start(client: Client, *, agreed: bool, used: Set[str]) -> None:
    """Call this at each start. Whether it reports depends on the user's consent, and never on what was used."""
    if agreed:
        client.report(QUESTION, frozenset(used))

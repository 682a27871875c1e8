"""An app that embeds the client: run `python examples/app.py`.

The class `App` is all that an app needs. The rest of the file plays the operator and the user, so that the example
runs on one machine: it starts a collection server, lets the user answer, and takes the server away for a while.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from ldp_client import Client, Collection, Policy, PolicyRefused
from ldp_server.testing import ServerProcess

HERE = Path(__file__).parent

POLICY = Policy(max_epsilon="1", budget="2", period="30 days", lifetime="12")
"""The app's own promise to its users. No server can change it."""


class App:
    """A browser-like app that may report which page its user starts from."""

    def __init__(self, collector: str, folder: Path) -> None:
        self.homepage = Collection.load(HERE / "homepage.ldp")  # the question ships with the app
        # A real app leaves out `tls` and `delay`: then TLS is on, and a report waits up to an hour.
        self.client = Client(collector, storage=folder / "ldp", policy=POLICY, tls=False, delay=0)

    def on_start(self, page: str | None) -> None:
        """Report at every start, whether or not the user has set a page: the call itself must tell nothing."""
        receipt = self.client.report(self.homepage, page)
        if receipt.made:
            print("app: a randomized report was stored on the device. It will be sent later.")
        else:
            print("app: the first answer stands. Nothing new was made, nothing was charged.")

    def privacy_page(self) -> None:
        """What a user sees under Settings > Privacy."""
        ledger, outbox = self.client.ledger(), self.client.outbox()
        print(f"app: privacy spent {float(ledger.spent):g} of {float(POLICY.lifetime):g}; answered: ", end="")
        print(", ".join(repr(question.question) for question in ledger.questions) or "nothing")
        print(f"app: sent so far: {outbox.counters.get('accepted', 0)}, waiting: {outbox.waiting}")

    def try_a_greedy_question(self) -> None:
        """A question that wants more than the policy allows is refused, before the answer is looked at."""
        browser = (HERE / "browser.ldp").read_text("utf-8").replace('epsilon = "1"', 'epsilon = "4"')
        try:
            self.client.report(Collection.from_toml(browser), "Firefox")
        except PolicyRefused as refusal:
            print(f"app: refused: {refusal}")

    def close(self) -> None:
        """Send what can be sent within some seconds; the rest stays for the next start."""
        self.client.close()


def main() -> None:
    """Run the app three times; in the second run the server does not answer."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with ServerProcess(folder / "server") as server:
            with server.analyst() as operator:
                operator.create(Collection.load(HERE / "homepage.ldp"))
            server.stop()
            print("-- the server is down; the user answers")
            app = App(server.target, folder)
            app.on_start("www.example.org")
            app.privacy_page()
            app.try_a_greedy_question()
            app.client.close(timeout=0)

            print("-- the server is back; the app starts again")
            server.start()
            app = App(server.target, folder)
            app.on_start("www.example.com")
            app.client.flush(everything=True)  # a real app leaves this to the background thread
            app.privacy_page()
            app.close()

            with server.analyst() as operator:
                summary = operator.show(Collection.load(HERE / "homepage.ldp"))
            print(f"-- the server holds {summary.reports} report of {summary.stored_bytes} bytes")


if __name__ == "__main__":
    main()

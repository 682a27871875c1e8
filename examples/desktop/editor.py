"""What an app does at each start. This one stands for yours."""

from pathlib import Path

from telemetry import on_start, open_client

client = open_client("127.0.0.1:7900", Path("app-data"), trying_out=True)
on_start(client, agreed=True, used={"dark mode", "split view"})
client.flush(everything=True)  # a real app leaves this to the background thread
print("reports sent:", client.outbox().counters["accepted"])
print(*client.ledger().statement(), sep="\n")  # for a page "Privacy" in the app's settings
client.close()

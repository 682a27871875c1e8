"""The process under audit: an app's client. Reads a spec and an item from its input, writes reports to its output.

    {"spec": hex, "item": ..., "count": n}    one line in; n packed reports out, nothing else

The randomization is the device's own: `Collection.randomize` on words from the operating system. The item comes by
standard input, as everywhere: never by a command line.
"""

from __future__ import annotations

import json
import sys

from ldp_client.coins import draw_words
from ldp_client.collection import Collection

__all__ = ["main"]


def main() -> None:
    """Make the reports."""
    asked = json.loads(sys.stdin.readline())
    collection = Collection.from_bytes(bytes.fromhex(asked["spec"]))
    item = frozenset(asked["item"]) if isinstance(asked["item"], list) else asked["item"]
    count = collection.randomizer.words
    out = sys.stdout.buffer
    for _ in range(asked["count"]):
        out.write(collection.randomize(item, draw_words(count)))


if __name__ == "__main__":
    main()

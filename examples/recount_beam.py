"""A recount of exported reports on Apache Beam.

    ldp-server export ID --reports --out reports
    python examples/recount_beam.py reports --runner=FnApiRunner

Beam is not among Hearsay's extras: pip install apache-beam. Its workers need hearsay[server], and must see the same
files. A task is a range of the file; the runner runs a lost one again. Beam's default runner on one machine fetches a
program of its own, so name one that is there, as above. Run with apache-beam 2.77.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import partial
from itertools import chain
from pathlib import Path

from ldp_client import Collection
from ldp_server.offline import count_part, merged, parts_of
from ldp_server.oracles import oracle_for, restore
from ldp_server.oracles.base import Oracle

TASKS = 8
"""About as many as the runner has workers."""


def together(spec: bytes, counted: Iterable[Oracle]) -> Oracle:
    """Add up counts in an oracle of its own; Beam does this in any order and in any groups, and adds up sums again."""
    collection = Collection.from_bytes(spec)
    return merged(collection, chain([oracle_for(collection)], counted))


def written(out: str, total: Oracle) -> int:
    """Write the counts, on whichever worker this runs."""
    return Path(out).write_bytes(total.to_bytes())


def recount(collection: Collection, files: list[Path], out: Path, options: list[str]) -> None:
    """Count on the runner that the options name, and write the counts to a file that its worker can write."""
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    with beam.Pipeline(options=PipelineOptions(options)) as pipeline:
        parts = pipeline | beam.Create(parts_of(collection, files, TASKS)) | beam.Reshuffle()
        total = parts | beam.Map(count_part) | beam.CombineGlobally(partial(together, collection.spec_bytes))
        total | beam.Map(partial(written, str(out)))


if __name__ == "__main__":
    paths = [Path(name) for name in sys.argv[1:] if not name.startswith("--")]
    question = Collection.load(f"{paths[0]}.ldp")
    recount(question, paths, Path("counts").resolve(), [word for word in sys.argv[1:] if word.startswith("--")])
    print(f"counts: {restore(question, Path('counts').read_bytes()).reports:,} reports")

"""A recount of exported reports on Ray.

    ldp-server export ID --reports --out reports
    python examples/recount_ray.py reports

Ray is not among Hearsay's extras: pip install ray. Its workers need hearsay[server], and must see the same files. A
task is a range of the file; Ray runs a lost one again. Moving counts costs more than counting, so there are as few
tasks as cores, and counts are added up as they come. Run with ray 2.60.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ldp_client import Collection
from ldp_server.offline import count_part, merged, parts_of
from ldp_server.oracles.base import Oracle


def recount(collection: Collection, files: list[Path]) -> Oracle:
    """Count on the cluster that RAY_ADDRESS names, or on this machine."""
    import ray

    here = {} if "RAY_ADDRESS" in os.environ else {"_node_ip_address": "127.0.0.1"}  # for nobody else on the network
    ray.init(include_dashboard=False, log_to_driver=False, **here)
    count = ray.remote(count_part)
    parts = parts_of(collection, files, int(ray.cluster_resources()["CPU"]))
    return merged(collection, _as_they_come(ray, [count.remote(part) for part in parts]))


def _as_they_come(ray: Any, waiting: list[Any]) -> Iterator[Oracle]:
    while waiting:
        done, waiting = ray.wait(waiting, num_returns=1)
        yield ray.get(done[0])


if __name__ == "__main__":
    paths = [Path(name) for name in sys.argv[1:]]
    question = Collection.load(f"{paths[0]}.ldp")
    total = recount(question, paths)
    Path("counts").write_bytes(total.to_bytes())
    print(f"counts: {total.reports:,} reports")

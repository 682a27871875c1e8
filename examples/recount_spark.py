"""A recount of exported reports on Spark.

    ldp-server export ID --reports --out reports
    python examples/recount_spark.py reports

Spark is not among Hearsay's extras: pip install pyspark (with Java). Its workers need hearsay[server], and must see the
same files. A task is a range of the file; Spark runs a lost one again. `treeReduce` adds counts up in steps.
Run with pyspark 4.3 and Java 17.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ldp_client import Collection
from ldp_server.offline import count_part, merged, parts_of
from ldp_server.oracles import oracle_for
from ldp_server.oracles.base import Oracle


def added(one: Oracle, other: Oracle) -> Oracle:
    """Add the counts of one to those of the other; Spark may do this in any order."""
    one.merge(other)
    return one


def recount(collection: Collection, files: list[Path]) -> Oracle:
    """Count on the cluster of the Spark session that there is, or on this machine."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers' Python: one that has Hearsay
    spark = SparkSession.builder.appName("recount").getOrCreate()
    context = spark.sparkContext
    parts = parts_of(collection, files, context.defaultParallelism)
    if not parts:
        return oracle_for(collection)
    total = context.parallelize(parts, len(parts)).map(count_part).treeReduce(added)
    return merged(collection, [total])


if __name__ == "__main__":
    paths = [Path(name) for name in sys.argv[1:]]
    question = Collection.load(f"{paths[0]}.ldp")
    total = recount(question, paths)
    Path("counts").write_bytes(total.to_bytes())
    print(f"counts: {total.reports:,} reports")

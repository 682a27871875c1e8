"""Counting and decoding of exported files, away from any server, on as many cores as there are.

parts     what is counted by one task: a range of a file of reports; a task is a pure function
decodes   what is decoded by one task: a file of counts
running   tasks on an executor, a few at a time, with their results as they come
engines   executors: threads of this process, processes, a Dask cluster

Moving counts from process to process costs more than counting, so tasks are few and large. A task that was lost is run
again, or twice: its result is the same, and only this process adds results up, each once.
"""

from ldp_server.offline.decodes import CountsFile, decode_file
from ldp_server.offline.engines import Engine, dask_cluster, processes, this_process
from ldp_server.offline.parts import FilePart, count_part, merged, parts_of
from ldp_server.offline.running import results

__all__ = [
    "CountsFile",
    "Engine",
    "FilePart",
    "count_part",
    "dask_cluster",
    "decode_file",
    "merged",
    "parts_of",
    "processes",
    "results",
    "this_process",
]

"""Volunteers beside the reports: a curator's releases in a folder, and both sources as tables and a chart.

curated    the releases, checked with the curator's public key
shown      tables, the chart, and the commands that give the same
"""

from ldp_server.web.two_sources.curated import AVERAGE, CuratedRelease, CuratedReleases
from ldp_server.web.two_sources.shown import address, figure, merged_table, release_table, same, svg

__all__ = [
    "AVERAGE",
    "CuratedRelease",
    "CuratedReleases",
    "address",
    "figure",
    "merged_table",
    "release_table",
    "same",
    "svg",
]

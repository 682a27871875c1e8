"""Answers as tables: data frames, CSV, Parquet, HTML and plots.

table        an answer as named columns of equal length: what all other forms come from
items        items in the cells of a table, and back
metadata     what stays with an answer: of what, of whom, with which promise
csv_text     CSV, and its metadata
arrow        Arrow tables and Parquet (extra `parquet`)
data_frames  pandas, polars, numpy (extra `frames`)
html_text    a piece of HTML, as notebooks show it
plots        plots, one kind for each kind of answer (extra `plots`)
words        values as people read them
extras       libraries that may be installed or not
"""

from ldp_server.tables.csv_text import csv_rows
from ldp_server.tables.data_frames import FrameLibrary
from ldp_server.tables.extras import MissingExtra
from ldp_server.tables.items import item_of
from ldp_server.tables.metadata import AnswerMetadata
from ldp_server.tables.plots.drawing import AnswerPlot
from ldp_server.tables.table import AnswerTable, ColumnKind, TableColumn

__all__ = [
    "AnswerMetadata",
    "AnswerPlot",
    "AnswerTable",
    "ColumnKind",
    "FrameLibrary",
    "MissingExtra",
    "TableColumn",
    "csv_rows",
    "item_of",
]

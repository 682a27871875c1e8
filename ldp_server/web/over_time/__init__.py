"""The pages about several periods or two collections: values over time, and differences.

choice     what a reader chose, and what a collection can be asked
asking     the calls; how intervals allow for items that were picked from the same reports
words      the change test in words, the command and the lines of Python
tables     answers as tables of a page and as files
drawing    answers as charts
"""

from ldp_server.web.over_time import drawing, tables, words
from ldp_server.web.over_time.asking import ComparisonShown, TrendShown, ask_comparison, ask_trend
from ldp_server.web.over_time.choice import ACROSS, BY_POST, TOLD, AcrossOptions, kinds_of, offered_across, read_across

__all__ = [
    "ACROSS",
    "BY_POST",
    "TOLD",
    "AcrossOptions",
    "ComparisonShown",
    "TrendShown",
    "ask_comparison",
    "ask_trend",
    "drawing",
    "kinds_of",
    "offered_across",
    "read_across",
    "tables",
    "words",
]

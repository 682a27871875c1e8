"""Planning a question before anybody is asked: from what is wanted to a mechanism, an error, and a file.

goals      what is wanted: the kind of answer, and two of users, epsilon and error
expected   what an answer would print at its expected counts
outlook    the error at given users and epsilon
planner    solve: works out what is missing
promise    a plan in sentences
drafts     draft: the file of the question
tables     which tables of a record devices draw, for the tables that are to be known
record_drafts  draft_tables: the file of such a question
areas, averages, protected, sets    the same for a map, for averages, for an epsilon of each field, for sets of items
channels   the best table of probabilities for a loss and a metric
shifts     the same for channels by differences
volunteers  what a share of volunteers is worth
"""

from ldp_server.planning.drafts import Draft, draft
from ldp_server.planning.goals import Goal, QuestionKind
from ldp_server.planning.planner import Plan, solve

__all__ = ["Draft", "Goal", "Plan", "QuestionKind", "draft", "solve"]

"""Planning a question before anybody is asked: from what is wanted to a mechanism, an error, and a file.

goals      what is wanted: the kind of answer, and two of users, epsilon and error
expected   what an answer would print at its expected counts
outlook    the error at given users and epsilon
planner    solve: works out what is missing
promise    a plan in sentences
drafts     draft: the file of the question
tables     which tables of a record devices draw, for the tables that are to be known
record_drafts  draft_tables: the file of such a question
"""

from ldp_server.planning.drafts import Draft, draft
from ldp_server.planning.goals import Goal, QuestionKind
from ldp_server.planning.planner import Plan, solve

__all__ = ["Draft", "Goal", "Plan", "QuestionKind", "draft", "solve"]

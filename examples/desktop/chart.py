"""Draw which features are used: a point for each, with its interval."""

from telemetry import QUESTION

from ldp_server.analyst import Analyst

with Analyst.local("data") as analyst:
    answer = analyst.attributes(QUESTION)

answer.plot().save("usage.svg")
print(*answer.statement, sep="\n")

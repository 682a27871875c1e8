"""Draw which features are used: a point for each, with its interval."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from telemetry import QUESTION

from ldp_server.analyst import Analyst

with Analyst.local("data") as analyst:
    answer = analyst.attributes(QUESTION)

rows = sorted(answer.rows, key=lambda row: row.estimate)
names = [row.attributes[0] for row in rows]
shares = [100 * row.estimate / answer.reports for row in rows]
below = [100 * (row.estimate - row.low) / answer.reports for row in rows]
above = [100 * (row.high - row.estimate) / answer.reports for row in rows]

plt.figure(figsize=(7, 3), layout="constrained")
plt.errorbar(shares, names, xerr=[below, above], fmt="o", capsize=4)
plt.xlim(0, 100)
plt.xlabel(f"percent of {answer.reports:,} users, with 95% intervals")
plt.title(answer.question)
plt.savefig("usage.svg")
print(*answer.statement, sep="\n")

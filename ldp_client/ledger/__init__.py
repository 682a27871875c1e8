"""What was answered and what it cost: one SQLite file, its budget rules, and the checks that it is sound."""

"""The ledger: the answers, their charges, the budget rules, and the checks that the file is sound."""

"""Answers about several fields of records at once: the average of one in each cell of the others."""

"""Mechanisms for records: a report is about some fields, some attributes, or one grid of a map."""

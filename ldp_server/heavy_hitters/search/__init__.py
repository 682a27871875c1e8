"""The practical decoder: search by scores, then accept by tests."""

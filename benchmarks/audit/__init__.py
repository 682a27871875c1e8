"""The audit of privacy, and the clients that leak on purpose, which it must catch."""

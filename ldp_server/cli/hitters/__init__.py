"""The command that lists popular items, and the one that makes a dictionary for it from public texts."""

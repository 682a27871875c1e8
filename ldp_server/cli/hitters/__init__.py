"""The command that lists popular items."""

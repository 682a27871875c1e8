"""The commands about sealed reports: key new | list | retire."""

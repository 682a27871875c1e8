"""The commands of `ldp-simulate`, one module each; what they share is in options.py."""

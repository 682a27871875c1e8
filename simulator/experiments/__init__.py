"""The experiments of `ldp-simulate`. X.py has functions from options to data, X_command.py the command and its page."""

"""Periods in the shell.

options    --period and --periods of every question, and the command periods
commands   trend, change, compare
"""

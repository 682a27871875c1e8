"""Attacks on a server of our own on this machine: bounded in count and time, and never against another address.

Each attack runs against a fresh server process. A module of this folder has one group of attacks in `ATTACKS`;
`benchmark.GROUPS` names the modules. docs/robustness.md has the figures.
"""

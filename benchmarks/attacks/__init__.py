"""Attacks on a server of our own on this machine: bounded in count and time, and never against another address."""

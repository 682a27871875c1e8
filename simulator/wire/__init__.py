"""Simulated users who report over real gRPC, with faults.

place     where a run takes place; deployment: several collectors on a PostgreSQL
envelope  what a sender puts around its reports: seals and tokens
faults    what goes wrong, as a person writes it; disturbing: kills, crashes and cuts, again and again
proxy     a network that fails; skewed: a program with a clock that is wrong
ending    SIGTERM ends a run as Ctrl-C does
relay     a relay between the senders and the server
sender    one connection that sends batches and loses acknowledgements on purpose
tokens    an issuer of unlinkable tokens, and how senders get them
senders   many senders, each in a process of its own, and a count of what they sent
"""

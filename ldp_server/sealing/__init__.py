"""Sealed reports on the server: its keys, and the child processes that open what came sealed.

keys       key files, and which of them the signed list names and which of them open
locked     key files that a passphrase locks
opening    from sealed units to reports: pure, one unit after the other
frames     what parent and child say to each other
__main__   the child
pool       the parent's side: a few children, one job each at a time
"""

"""A relay: a small server between apps and the collection server, for an operator of its own.

It takes sealed reports, holds them until a period is over and at least as many are there as the collection's spec
says, permutes them, and passes them on. It cannot read them: only the collection server has the key.

assemble   puts one relay together, runs it and drains it
checks     what `ldp-server relay check` looks at
config     its settings, and sample.toml
door       what apps call: the promise, and batches
forward    released batches on their way to the collection server
keeper     what it does by the clock: it ends rounds, and keeps no order of arrival on the disk
lasting    what has been so for an hour: nothing is deleted because a clock is wrong for a while
metrics    what it counts
rounds     when reports may go: plain arithmetic of periods
served     the collections that it serves: the signed list and the specs of the collection server
store      relay.db: what is held, and what was released and has not arrived yet
"""

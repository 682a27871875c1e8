"""One store on several databases of PostgreSQL, for who needs more than one can take.

routing    which database a batch goes to, and why nothing is counted twice
reader     reading all of them
log        writing, closing, folding: the first database, the *home*, decides, and the others follow it
entering   a collection enters all of them, or none
following  the copies of what the home says of each collection
commit     a writer thread for each of them
claiming   writes into each database which one it is
store      the store by its addresses

The home holds the catalogue, analysts' tokens, volunteers' records and witnesses' signatures. Each database holds the
batches that go to it, with their periods, blocks, tokens and counts, as a database that is alone would. Nothing that is
counted lies in two of them, and counts are additive: so a period has a record and counts of its own in each, and an
answer is about their sum. A fold is one transaction in one database.

A database that cannot be reached is waited for by the batches that go to it alone. An answer needs all of them.
"""

"""The server: thin handlers over the store, one event loop, one writer thread, one child process.

assemble      puts one server together, runs it and drains it
ports         the ports, and which wire service is on which
operators     the methods that operators and analysts call
collector     the methods that apps call
intake        how batches come in, the same for a relay
background    checkpoints of counts, compaction and sweeping by the clock
compaction    folding reports into counts, and dropping what is not needed
lifecycle     creating, closing and deleting collections
live          the collections as the running server holds them
admission     who may submit, and how much of the server one caller may take
bounded       calls of one message and one answer, in limited time and memory
health        health checks and reflection
signed_list   the public list of collections
wire          bytes to messages and errors to statuses
structure     looking for damage in the structure of log.db
tls           certificates that may change while the server runs
running       what every server process does: serve until told to stop, drain, close
sharing       what is done only because other servers write to the same store
logs, metrics
"""

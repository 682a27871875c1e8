"""The server itself: thin handlers over the store, one event loop, one writer thread, one niced child process.

wire          bytes to messages and errors to statuses, the same for every method
live          the collections as the running server holds them, and what a batch must pass
admission     who may submit: tokens, certificates, rates
ingest        from a request to a ticket and back to an acknowledgement, with bounded memory
collector     the methods that apps call; stream: many batches on one call
operators     the methods that operators call; calls: who called, and how it ended
lifecycle     creating, closing, deleting and compacting collections
signed_list   the public list of collections
auth, tls     who may call, and over what
background    checkpoints, compaction and sweeping in the background
assemble      puts it together; runs and drains it
"""

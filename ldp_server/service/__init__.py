"""The server itself: thin handlers over the store, one event loop, one writer thread, one niced child process.

wire          bytes to messages and errors to statuses, the same for every method
gates         what a batch must pass: collection, window, lengths, admission
ingest        from a request to a ticket and back to an acknowledgement, with bounded memory
collector     the methods that apps call
analyst       the methods that operators call
auth, tls     who may call, and over what
upkeep        checkpoints, compaction and sweeping in the background
server        puts it together; runs and drains it
"""

"""The protocol over numpy arrays, for servers and simulators: the same results as ldp_client/protocol, bit for bit."""

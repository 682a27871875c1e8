"""The protocol over numpy arrays: bit-identical twins of ldp_client/protocol, for servers and simulators."""

"""Commands for machines of other operators: what they run follows or serves somebody else's collection server."""

"""The key agent: a small process that holds the curator's keys in memory and opens volunteers' records for a curator.

The key files need not lie on the machine's disk while it runs. Over its socket it opens records of volunteers and
nothing else: neither a key nor a report that was sealed to the collection server ever comes out.

frames    what agent and curator say to each other
process   what keeps the keys out of core dumps, swap and debuggers
serving   the agent
asking    the curator's side
"""

"""The methods that operators and analysts call.

handlers    the methods by name; creating, closing, deleting, compacting
queries     what only reads: show, list, estimate, heavy hitters, periods
exports     counts or reports, in pieces
calls       around every method: who calls, how long it takes, how it ends
auth        who may call, and what; known: tokens that were just looked up
last_lists  the last lists of popular items, for searches that begin with one
local_token the token for commands on the server's own machine
"""

from ldp_server.service.operators.auth import Auth
from ldp_server.service.operators.calls import Calls
from ldp_server.service.operators.exports import Exports
from ldp_server.service.operators.handlers import Operators, ServerFacts
from ldp_server.service.operators.local_token import LocalToken
from ldp_server.service.operators.queries import Queries, QuerySources

__all__ = ["Auth", "Calls", "Exports", "LocalToken", "Operators", "Queries", "QuerySources", "ServerFacts"]

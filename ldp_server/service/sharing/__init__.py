"""What a server does only because others write to the same store.

roles      which part of the work a server does
opening    opens the store as the role needs it
followed   collections that others enter and change
space      how much space the store takes, asked now and then
"""

from ldp_server.service.sharing.opening import StoreOpening
from ldp_server.service.sharing.roles import ANSWER, COLLECT, SERVE, UPKEEP, Role

__all__ = ["ANSWER", "COLLECT", "SERVE", "UPKEEP", "Role", "StoreOpening"]

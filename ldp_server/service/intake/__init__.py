"""How batches come in, the same for the collection server and for a relay.

calls     the methods Submit and SubmitStream
stream    many batches on one call
waiting   what is received and not yet durable: how much, and when there is room
replies   the answers to batches
"""

from ldp_server.service.intake.calls import IntakeCalls
from ldp_server.service.intake.replies import REASONS, answer, refusal
from ldp_server.service.intake.stream import StreamLimits
from ldp_server.service.intake.waiting import Offering, UnderWay

__all__ = ["REASONS", "IntakeCalls", "Offering", "StreamLimits", "UnderWay", "answer", "refusal"]

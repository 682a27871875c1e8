"""GenProt (Theorem 6.1), a reproduction: importing this package adds it to the registries of the three rooms.

spec.proto keeps its number, and the golden vectors its reports. The client and the server that are shipped refuse
such a spec.
"""

from __future__ import annotations

from ldp_client.mechanisms import MECHANISMS
from ldp_server.oracles import ORACLES
from simulator.crowd import CROWDS
from simulator.reproductions.genprot.oracle import GenProtOracle, price, randomize, randomize_users, total_variation
from simulator.reproductions.genprot.randomizer import GenProt, design, draw_noise, noise_law

__all__ = [
    "GenProt",
    "GenProtOracle",
    "design",
    "draw_noise",
    "noise_law",
    "price",
    "randomize",
    "randomize_users",
    "total_variation",
]

MECHANISMS.register(GenProt.name, GenProt)
ORACLES.register(GenProt.name, GenProtOracle)
CROWDS.register(GenProt.name, randomize)

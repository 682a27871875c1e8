"""Many tree sketch reports at once: a sketch of teams like any other."""

from __future__ import annotations

from simulator.crowd.team_sketch import randomize

__all__ = ["randomize"]

"""A short configuration for each kind of server: `ldp-server config --role NAME` prints it.

The files of `deploy` are these. Every setting, with its default, is in `ldp-server config` and `ldp-server relay
config`.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["SAMPLES"]

SAMPLES = {
    name: (Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8")
    for name in ("serve", "collect", "answer", "upkeep", "relay")
}
"""The text of each file by the role that it is for."""

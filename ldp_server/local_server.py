"""The file `address` in a data directory: a running server writes it for the commands of the same machine.

The file is JSON: the address for operators, the server's certificate if it uses TLS, and whether it asks for a
client certificate. It holds no secret. The token for the directory's owner is in the file `local.token` beside it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ldp_client.errors import LdpError, StorageError, Unavailable
from ldp_server.store import DataDirectory
from ldp_server.store.errors import translated

__all__ = ["LocalServer"]


@dataclass(frozen=True)
class LocalServer:
    """The address at which the server of a data directory takes operators' calls, and its TLS settings."""

    address: str
    certificate: str | None = None
    """The server's PEM certificate; None if it uses plain text."""
    client_certificate: bool = False
    """Whether every caller must show a certificate of its own."""

    def write(self, directory: DataDirectory) -> None:
        with translated(directory.address):
            directory.address.write_text(json.dumps(asdict(self)) + "\n", encoding="utf-8")

    @classmethod
    def address_of(cls, data: Path) -> str | None:
        """Return where the server of `data` takes operators' calls; None if none runs there."""
        try:
            return cls.read(data).address
        except LdpError:
            return None

    @classmethod
    def read(cls, data: Path) -> LocalServer:
        """Read what the server of `data` wrote; `Unavailable` if none runs there."""
        file = DataDirectory(data).address
        try:
            return cls(**json.loads(file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise Unavailable(
                f"no server runs on {data}: start one (ldp-server serve --data {data}), or say where it is (--server "
                "HOST:PORT)"
            ) from None
        except PermissionError:
            raise StorageError(f"{file} may not be read: run the command as the server's user") from None
        except (OSError, ValueError, TypeError):
            raise StorageError(f"{file} cannot be read: stop the server and start it again") from None

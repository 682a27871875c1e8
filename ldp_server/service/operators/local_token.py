"""The local token: a running server leaves it in its data directory, for commands on the same machine.

Only the directory's owner can read the file, and the owner could make a token in any case. The token works from this
machine only (auth.py), for an hour. The server renews it while it runs, and removes it when it stops. Older local
tokens stay valid until their hour is over, so that a command that has just read one is answered.
"""

from __future__ import annotations

import asyncio
import logging
import os

from ldp_client.errors import StorageError
from ldp_server.service.logs import event
from ldp_server.store import AccessTokens, DataDirectory
from ldp_server.store.errors import translated

__all__ = ["LocalToken"]

_LIFE = 3600
_RENEW = 1200
"""After how many seconds a token is replaced."""
_LOOK = 30.0
"""How often it is looked at. The wall clock may jump, so the time until the next renewal cannot be slept through."""


class LocalToken:
    """The file with the local token, and its row among the analyst tokens."""

    def __init__(self, directory: DataDirectory, access: AccessTokens) -> None:
        self._file = directory.local_token
        self._access = access
        self._token = ""

    def renew(self) -> None:
        """Make a new token and put it into the file, at once."""
        token = self._access.create_local(_LIFE)
        new = self._file.with_name(f"{self._file.name}.new")
        with translated(new):
            new.unlink(missing_ok=True)
            handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as out:
                out.write(token + "\n")
            new.replace(self._file)
        self._token = token

    def is_due(self) -> bool:
        """Whether a new token is needed: time has passed, or somebody has revoked this one or removed the file."""
        held = self._access.verify(self._token)
        return held is None or held.expires - self._access.clock() <= _LIFE - _RENEW or not self._file.is_file()

    async def run(self) -> None:
        """Renew it when it is due, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK)
            try:
                if await asyncio.to_thread(self.is_due):
                    await asyncio.to_thread(self.renew)
            except StorageError as error:
                event(logging.WARNING, "the local token was not renewed, to be tried again", reason=str(error))

    def remove(self) -> None:
        """Make every local token worthless, and remove the file."""
        self._file.unlink(missing_ok=True)
        self._access.drop_local()

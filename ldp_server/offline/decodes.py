"""Many decodes side by side: a file of exported counts each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, LdpError
from ldp_server.heavy_hitters import BETA, HeavyHitters, decode
from ldp_server.oracles import restore

__all__ = ["CountsFile", "decode_file"]


@dataclass(frozen=True)
class CountsFile:
    """A file that `ldp-server export` wrote. Its path must mean the same wherever the task runs."""

    spec: bytes
    path: str
    beta: float = BETA


def decode_file(file: CountsFile) -> HeavyHitters:
    """Find the heavy hitters of a file of counts. It reads nothing but the file, and changes nothing."""
    collection = Collection.from_bytes(file.spec)
    try:
        oracle = restore(collection, Path(file.path).read_bytes())
        return decode(collection, oracle, beta=file.beta)
    except OSError as error:
        raise InvalidSpec(
            f"cannot read {file.path} where it is decoded: {error.strerror}. All workers must see the same files"
        ) from None
    except InvalidSpec as error:
        raise InvalidSpec(f"{file.path}: {error}") from None
    except LdpError as error:
        raise InvalidSpec(f"{file.path} does not hold counts of this collection: {error}") from None

"""Generate the Python code for proto/ldp/v1 into ldp_client/protocol/v1.

    python proto/generate.py            write it
    python proto/generate.py --check    say whether what is committed is what would be written (exit 1 if not)

It uses the oldest supported grpcio-tools (see the `test` extra): newer generated code refuses older runtimes.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "proto"
TARGET = ROOT / "ldp_client" / "protocol" / "v1"
GOOGLE = Path(grpc_tools.__file__).parent / "_proto"  # google/protobuf/*.proto


def generate(out: Path) -> dict[str, str]:
    """Every generated file by name, with imports made relative to the package it lives in."""
    names = sorted(str(p.relative_to(SOURCE)) for p in SOURCE.glob("ldp/v1/*.proto"))
    arguments = [
        f"-I{SOURCE}",
        f"-I{GOOGLE}",
        f"--python_out={out}",
        f"--pyi_out={out}",
        f"--grpc_python_out={out}",
        *names,
    ]
    if protoc.main(["protoc", *arguments]) != 0:
        raise SystemExit("protoc failed")
    files = {p.name: p for p in sorted((out / "ldp" / "v1").iterdir())}
    texts = {}
    for name, path in files.items():
        text = path.read_text()
        service = name.removesuffix("_pb2_grpc.py") if name.endswith("_grpc.py") else None
        if service is not None and "service " not in (SOURCE / "ldp" / "v1" / f"{service}.proto").read_text():
            continue  # a file of messages alone: its service module would be empty
        texts[name] = text.replace("from ldp.v1 import", "from ldp_client.protocol.v1 import")
    return texts


def main() -> int:
    """Write the generated files, or check them."""
    with tempfile.TemporaryDirectory() as folder:
        texts = generate(Path(folder))
    if "--check" in sys.argv[1:]:
        held = {p.name: p.read_text() for p in TARGET.glob("*_pb2*")}
        stale = sorted(n for n in held.keys() | texts.keys() if held.get(n) != texts.get(n))
        for name in stale:
            sys.stderr.write(f"stale: ldp_client/protocol/v1/{name} (run: python proto/generate.py)\n")
        return 1 if stale else 0
    TARGET.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (TARGET / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

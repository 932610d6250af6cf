"""Let one bomb go off in this process, and print what was measured as JSON: ``python -m hostile NAME``.

Without a name, it lists all.
"""

from __future__ import annotations

import json
import os
import resource
import sys

import trio

from . import responses, serving, values  # noqa: F401  # each adds its bombs
from .measuring import BOMBS, MEGABYTE, Measured, beating

ADDRESS_SPACE = 3_000 * MEGABYTE
"""What a container might have; more is a MemoryError."""


async def run(name: str) -> tuple[str, Measured]:
    async with beating() as measured:
        answer = await BOMBS[name].run(measured)
    return answer, measured


def main(name: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    answer, measured = trio.run(run, name)
    fields = ("stall", "stall_without_gc", "stall_cpu", "memory", "duration")
    print(json.dumps({"answer": answer, **{field: round(getattr(measured, field), 2) for field in fields}}), flush=True)
    os._exit(0)  # tearing down the heap, or a thread that waits for a FIFO, is not part of it


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in BOMBS:
        sys.exit(f"usage: python -m hostile NAME, which is one of: {' '.join(BOMBS)}")
    main(sys.argv[1])

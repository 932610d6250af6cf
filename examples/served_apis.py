"""Print each API version that a server serves and the number of its paths, read from
the OpenAPI document with httpx::

    python examples/served_apis.py --embedded
    python examples/served_apis.py
"""

from __future__ import annotations

import trio
from command_line import Arguments, connect, parser_of, start
from httpx import AsyncClient

from trioformer.testing import APIServer


async def count_paths(http: AsyncClient, document: str) -> int:
    """Count the paths of one API version. A document for all versions would have
    several megabytes.
    """
    response = await http.get(document)
    return len(response.raise_for_status().json().get("paths", {}))


async def simulate_nothing(
    server: APIServer, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Simulate nothing, because the embedded server already serves the built-in
    kinds.
    """
    task_status.started()


async def main(arguments: Arguments) -> None:
    """Print the API versions, and the number of paths of each version."""
    async with connect(arguments, simulate_nothing) as client, client.http() as http:
        index = (await http.get("/openapi/v3")).raise_for_status().json()["paths"]
        for version, entry in sorted(index.items()):
            number = await count_paths(http, entry["serverRelativeURL"])
            print(f"{version}: {number} paths")


if __name__ == "__main__":
    start(main, parser_of(__doc__))

"""Where the reader keeps every state."""

from __future__ import annotations


async def write_down(notification: object) -> None:
    pass

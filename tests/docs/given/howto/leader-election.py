"""What the reader's leader does."""

from __future__ import annotations

from collections.abc import AsyncIterator


async def incoming() -> AsyncIterator[str]:
    yield "one"


async def send(order: str, *, fence: int) -> None:
    pass


orders = incoming()

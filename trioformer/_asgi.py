"""The interface between HTTP servers and applications: the types of ASGI, and the end of a client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

import trio

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]


async def cancel_on_disconnect(receive: Receive, scope: trio.CancelScope) -> None:
    """Cancel a scope when the client disconnects.  Messages with the rest of the body are ignored."""
    await trio.lowlevel.checkpoint_if_cancelled()  # most responses are complete before this task begins
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()

"""The interface between HTTP servers and applications: the types of ASGI, and the end of a client."""

from __future__ import annotations

import math
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, MutableMapping
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

import trio

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
T = TypeVar("T")


async def until_disconnect(
    receive: Receive, function: Callable[[], Coroutine[Any, Any, T]], *, deadline: float = math.inf
) -> T | None:
    """Call a function, and cancel it when the client disconnects.  Messages with the rest of the body are ignored.

    Most functions return without blocking, so the task that waits for the client begins when the function blocks.

    Args:
        receive: The ASGI function that receives the messages of the request.
        function: The function.  Its exceptions are raised unchanged.
        deadline: The time at which it is cancelled, too.

    Returns:
        What the function returned, or None if it was cancelled.
    """
    await trio.lowlevel.checkpoint_if_cancelled()
    result: T | None = None
    raised: Exception | None = None
    async with trio.open_nursery() as nursery:
        nursery.cancel_scope.deadline = deadline

        def wait_for_disconnect() -> None:
            nursery.start_soon(_cancel_on_disconnect, receive, nursery.cancel_scope)

        try:
            result = await _call_before_blocking(wait_for_disconnect, function())
        except Exception as exc:  # noqa: BLE001  # raised below, outside of the nursery, which would put it in a group
            raised = exc
        nursery.cancel_scope.cancel()
    if raised is not None:
        raise raised
    return result


async def _cancel_on_disconnect(receive: Receive, scope: trio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


@types.coroutine
def _call_before_blocking(call: Callable[[], None], coroutine: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Await a coroutine, and call a function before it blocks for the first time."""
    step = partial(coroutine.send, None)
    has_blocked = False
    while True:
        try:
            trap = step()
        except StopIteration as done:
            return cast(T, done.value)
        if not has_blocked:
            call()
            has_blocked = True
        try:
            step = partial(coroutine.send, (yield trap))
        except BaseException as exc:  # noqa: BLE001  # raised by the coroutine
            step = partial(coroutine.throw, exc)

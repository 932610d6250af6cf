"""Clients for asyncio programs."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

from .. import client as trio_client
from .._doors import with_parameters_of
from .._util import UnopenedContext
from ._guest import Opening, guest_of_loop
from ._proxies import Client, Door


@with_parameters_of(trio_client.open_client)
def open_client(*args: Any, **kwargs: Any) -> AbstractAsyncContextManager[Client, bool | None]:
    """Open a client of one cluster for an asyncio program.

    For example::

        async with aio.open_client() as client:
            pods = await client.api(Pod, namespace="default").list()

    The client has the methods of :class:`trioformer.client.Client`, and its APIs have those of
    :class:`trioformer.client.Api`.  A coroutine method runs in trio; if the asyncio task is cancelled, the request is
    cancelled too, and has ended when ``CancelledError`` is raised.
    For functions of trioformer that take a client or an API, both have two methods: ``await pods.run(read_logs,
    "web-0")`` and ``async with pods.open(follow_logs, "web-0") as lines:``.

    The arguments and exceptions are those of :func:`trioformer.client.open_client`.

    Raises:
        RuntimeError: No asyncio loop is running, or trio already runs in this thread.
    """

    async def enter(stack: AsyncExitStack) -> Client:
        guest = await stack.enter_async_context(guest_of_loop())
        return Client(Door(guest), await guest.open(trio_client.open_client(*args, **kwargs), stack))

    return UnopenedContext(Opening(enter), "client", "async with aio.open_client() as client:")

"""Clients for threads."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from .. import client as trio_client
from .._doors import with_parameters_of
from ._portal import portal_of_process
from ._proxies import Client, Door


@with_parameters_of(trio_client.open_client)
@contextmanager
def open_client(*args: Any, **kwargs: Any) -> Generator[Client, None, None]:
    """Open a client of one cluster, which any thread may use, for the duration of a ``with`` block.

    For example::

        with sync.open_client() as client:
            pods = client.api(Pod, namespace="default").list()

    The client has the methods of :class:`trioformer.client.Client`, and its APIs have those of
    :class:`trioformer.client.Api`.  A coroutine method runs in trio, while the thread waits; if the thread gets an
    exception such as KeyboardInterrupt, the request is cancelled, and has ended when the exception is raised.
    For functions of trioformer that take a client or an API, both have two methods: ``pods.run(read_logs, "web-0")``
    and ``with pods.open(follow_logs, "web-0") as lines:``.

    The arguments and exceptions are those of :func:`trioformer.client.open_client`.

    Raises:
        RuntimeError: The thread runs trio or an asyncio loop.
    """
    with portal_of_process() as portal, portal.open(trio_client.open_client(*args, **kwargs)) as client:
        yield Client(Door(portal), client)

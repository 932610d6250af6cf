"""Programs of threads with an embedded server, which runs in the portal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from trioformer import Updated, sync
from trioformer.cache import Notification
from trioformer.models.core_v1 import ConfigMap
from trioformer.sync import _portal
from trioformer.testing import APIServer

P = ParamSpec("P")
R = TypeVar("R")


def in_portal(portal: _portal.Portal, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a synchronous function in the portal, such as a write of the embedded server."""

    async def call() -> R:
        return function(*args, **kwargs)

    return portal.call(call)


@contextmanager
def client_of(server: APIServer) -> Iterator[sync.Client]:
    """Run the server in the portal, and open a client of it; check that no thread of the portal remains."""
    with _portal.portal_of_process() as portal:
        job, ended = portal.job(server.run)
        portal.start(job)
        try:
            with sync.open_client(server.config, http_transport=server.http_transport()) as client:
                yield client
        finally:
            portal.cancel(job)
            portal.finish(job, ended)
    assert not portal_threads()


def name_in(notification: Notification[ConfigMap]) -> str:
    """Return the name of the object of a notification."""
    return (notification.new if isinstance(notification, Updated) else notification.object).name


def portal_threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "trioformer portal"]


@contextmanager
def running_thread(function: Callable[[], object]) -> Iterator[threading.Thread]:
    """Run a function in another thread during the block, and raise its exception at the end."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001  # raised in the test
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield thread
    finally:
        thread.join(30)
    assert not thread.is_alive()
    if raised:
        raise raised[0]

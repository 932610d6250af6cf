"""What type checkers infer for the manager; checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import assert_type

import trio

from trioformer import Client
from trioformer.controller import Controller, Request
from trioformer.manager import FollowedFile, HTTPOptions, ManagerContext, follow_file, run_controllers
from trioformer.manager._initializers import ControllerInitializer, Runnable
from trioformer.workqueue import QueueObserver


async def reconcile(request: Request) -> None: ...


async def start(context: ManagerContext) -> Controller:
    assert_type(context.queue_observer(), QueueObserver[Hashable] | None)
    return Controller(context.name, reconcile, workers=2, observer=context.controller_observer(workers=2))


async def skip(context: ManagerContext) -> None: ...


def start_sync(context: ManagerContext) -> Controller:
    return Controller(context.name, reconcile)


async def managing(client: Client, nursery: trio.Nursery) -> None:
    initializers: dict[str, ControllerInitializer] = {"start": start, "skip": skip}
    await nursery.start(partial(run_controllers, client, initializers, enabled="*,-skip"))
    await run_controllers(client, {"start": start})
    await run_controllers(client, {"start": start}, http=HTTPOptions(":8443", metrics_token="token"))
    await run_controllers(client, {"start": start_sync})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]  # not async
    runnable: Runnable = Controller("a", reconcile)
    del runnable


async def following() -> None:
    file = follow_file("path", int)
    assert_type(file, FollowedFile[int])
    assert_type(file.value, int)
    assert_type(await file.changed(1), int)

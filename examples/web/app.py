"""A web app on trio that answers from a cache of pods. ``dashboard.py`` uses asyncio.

    hypercorn -k trio app:app

Try: curl http://127.0.0.1:8000/pods/default
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TypedDict

import trio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from trioformer import Lister, SharedInformerFactory, open_client
from trioformer.models.core_v1 import Pod


class State(TypedDict):
    pods: Lister[Pod]


async def follow_pods(*, task_status: trio.TaskStatus[Lister[Pod]]) -> None:
    async with open_client() as client:
        factory = SharedInformerFactory(client)
        pods = factory.informer(Pod)
        async with trio.open_nursery() as nursery:
            await nursery.start(factory.run)  # until the cache has synced
            task_status.started(pods.lister)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncGenerator[State]:
    async with trio.open_nursery() as nursery:
        yield {"pods": await nursery.start(follow_pods)}
        nursery.cancel_scope.cancel()


async def list_pods(request: Request[State]) -> JSONResponse:
    pods = request.state["pods"].list(namespace=request.path_params["namespace"])
    return JSONResponse([pod.name for pod in pods])


app = Starlette(routes=[Route("/pods/{namespace}", list_pods)], lifespan=lifespan)

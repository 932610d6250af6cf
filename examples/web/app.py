"""A web app that answers from a cache of pods: hypercorn on trio, uvicorn on asyncio.

    hypercorn -k trio app:app
    uvicorn app:asyncio_app

Try: curl http://127.0.0.1:8000/pods/default
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import TypedDict

import trio
from anyio import to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal
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


def names_of(pods: Lister[Pod], namespace: str) -> list[str]:
    return [pod.name for pod in pods.list(namespace=namespace)]


# --- on trio ---


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncGenerator[State]:
    async with trio.open_nursery() as nursery:
        yield {"pods": await nursery.start(follow_pods)}
        nursery.cancel_scope.cancel()


async def list_pods(request: Request[State]) -> JSONResponse:
    names = names_of(request.state["pods"], request.path_params["namespace"])
    return JSONResponse(names)


app = Starlette(routes=[Route("/pods/{namespace}", list_pods)], lifespan=lifespan)


# --- on asyncio, with trio in a thread ---


class PortalState(State):
    portal: BlockingPortal


@asynccontextmanager
async def lifespan_with_thread(app: Starlette) -> AsyncGenerator[PortalState]:
    with start_blocking_portal(backend="trio") as portal:
        running, pods = await to_thread.run_sync(portal.start_task, follow_pods)
        yield {"pods": pods, "portal": portal}
        running.cancel()


async def list_pods_in_thread(request: Request[PortalState]) -> JSONResponse:
    state, namespace = request.state, request.path_params["namespace"]
    read = partial(names_of, state["pods"], namespace)
    return JSONResponse(await to_thread.run_sync(state["portal"].call, read))


asyncio_app = Starlette(
    routes=[Route("/pods/{namespace}", list_pods_in_thread)],
    lifespan=lifespan_with_thread,
)

"""An event that exceeds the limit: the watch ends, and the list has the object."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import trio
import trio.testing

from tests.support.scripted_http import InMemory, response
from trioformer.cache import ApiListWatch, InformerPhase, ReflectorOptions, SharedInformer
from trioformer.client import ClientOptions, open_client
from trioformer.errors import LimitExceededError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models.core_v1 import Pod
from trioformer.transport import Limits

LIMITS = Limits(object_bytes=1_000)


def item(name: str, size: int = 0, version: int = 5) -> dict[str, object]:
    metadata = {"name": name, "namespace": "default", "resourceVersion": str(version)}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "status": {"message": "x" * size}}


def page(*items: object, token: str = "") -> httpx.Response:
    metadata = {"resourceVersion": "7", "continue": token}
    return response(200, json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}))


def event(kind: str, *args: object) -> bytes:
    made = json.dumps({"type": kind, "object": item(*args)}, separators=(",", ":"))  # type: ignore[arg-type]  # passed on
    return made.encode() + b"\n"


@asynccontextmanager
async def informing(server: InMemory, errors: list[Exception]) -> AsyncIterator[SharedInformer[Pod]]:
    options = ReflectorOptions(watch_list=False, watch_error_handler=errors.append)
    async with (
        open_client(
            ClusterConfig(server="https://api.test"), http_transport=server, options=ClientOptions(limits=LIMITS)
        ) as client,
        trio.open_nursery() as nursery,
    ):
        informer = SharedInformer(ApiListWatch(client.api(Pod)), options=options)
        nursery.start_soon(informer.run)
        await trio.sleep(1)
        yield informer
        nursery.cancel_scope.cancel()


async def test_an_event_that_is_too_large_ends_the_watch_and_the_list_has_the_object(autojump_clock) -> None:
    events = [event("MODIFIED", "a", 5_000, 8), event("ADDED", "b", 0, 9), None]
    replies = [page(item("a")), response(200, *events), page(item("a", 5_000, 8), item("b", 0, 9)), response(200, None)]
    errors: list[Exception] = []
    async with informing(InMemory([*replies]), errors) as informer:
        await trio.sleep(5)
        assert [type(error) for error in errors] == [LimitExceededError]
        assert informer.state.phase is InformerPhase.WATCHING
        assert informer.state.quarantined == 0
        assert {pod.name: pod.resource_version for pod in informer.lister.list()} == {"a": "8", "b": "9"}
        found = informer.lister.get("default/a")
        assert found is not None
        assert found.status is not None
        assert found.status.message == "x" * 5_000


async def test_a_large_object_that_changes_again_and_again_does_not_cause_a_list_each_time(autojump_clock) -> None:
    """The delays grow as after any other failure of a watch."""
    replies: list[httpx.Response] = []
    for _ in range(500):
        replies += [page(item("a", 5_000)), response(200, 0.1, event("MODIFIED", "a", 5_000, 8), None)]
    server = InMemory([*replies])
    async with informing(server, []):
        await trio.sleep(600)
        assert 10 < len(server.requests) / 2 < 40

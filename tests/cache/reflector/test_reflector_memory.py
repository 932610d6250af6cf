"""What a list that broke leaves in memory: lists break when memory is short."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator

import httpx
import pytest
import trio
import trio.testing

from tests.cache.reflector.test_reflector import Sink
from trioformer.cache import ApiListWatch, Reflector, ReflectorOptions
from trioformer.client import open_client
from trioformer.errors import ConnectionFailedError, ForbiddenError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models.core_v1 import Pod


class Breaking(httpx.AsyncBaseTransport):
    """Sends a part of each list or watch-list, and breaks the connection."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=self._body(is_watch="watch" in request.url.params))

    async def _body(self, *, is_watch: bool) -> AsyncIterator[bytes]:
        pods = [f'{{"metadata":{{"name":"p{n}","namespace":"broken","resourceVersion":"1"}}}}' for n in range(2_000)]
        if is_watch:
            yield "".join(f'{{"type":"ADDED","object":{each}}}\n' for each in pods).encode()
        else:
            yield f'{{"kind":"PodList","apiVersion":"v1","metadata":{{}},"items":[{",".join(pods)},'.encode()
        await trio.sleep(9)
        raise httpx.ReadError("reset by peer")


def pods_in_memory() -> int:
    gc.collect()
    return sum(type(each) is Pod and each.namespace == "broken" for each in gc.get_objects())


@pytest.mark.parametrize("watch_list", [False, True])
@pytest.mark.parametrize("has_handler", [False, True])
async def test_the_last_error_does_not_keep_a_part_of_a_list(
    watch_list: bool, has_handler: bool, autojump_clock: trio.testing.MockClock
) -> None:
    errors: list[Exception] = []
    options = ReflectorOptions(watch_list=watch_list, watch_error_handler=errors.append if has_handler else None)
    async with (
        open_client(ClusterConfig(server="https://api.test"), http_transport=Breaking()) as client,
        trio.open_nursery() as nursery,
    ):
        reflector = Reflector(ApiListWatch(client.api(Pod)), Sink(), options)
        nursery.start_soon(reflector.run)
        await trio.sleep(8)
        assert pods_in_memory() > 1_000
        await trio.sleep(1.5)
        assert isinstance(reflector.statistics().last_error, ConnectionFailedError)
        assert pods_in_memory() == 0
        nursery.cancel_scope.cancel()


async def test_an_error_that_ends_the_reflector_has_its_traceback(autojump_clock: trio.testing.MockClock) -> None:
    async def forbid(request: httpx.Request) -> httpx.Response:
        return httpx.Response(403, json={"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403})

    async with open_client(
        ClusterConfig(server="https://api.test"), http_transport=httpx.MockTransport(forbid)
    ) as client:
        reflector = Reflector(ApiListWatch(client.api(Pod)), Sink(), ReflectorOptions(watch_list=False, grace_period=0))
        with pytest.raises(ForbiddenError) as caught:
            await reflector.run()
    assert any(entry.name == "list" for entry in caught.traceback), "where the request failed"

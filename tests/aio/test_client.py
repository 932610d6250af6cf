"""Clients in an asyncio program: requests, watches and logs, cancelled and cleaned up as asyncio does it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.lowlevel

from tests.support.asyncio_programs import client_of, config_map, run, server_with, until
from trioformer import Client, ListOptions, aio
from trioformer.errors import ConfigError, NotFoundError
from trioformer.models import KubernetesObject, ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Container, Pod, PodSpec
from trioformer.pods import connect_port, follow_logs, read_logs
from trioformer.testing import APIServer


def test_requests_return_objects_and_raise_the_errors_of_the_library() -> None:
    async def main() -> None:
        server = server_with("a")
        async with client_of(server) as client:
            assert isinstance(client, aio.Client)
            maps = client.api(ConfigMap, namespace="default")
            assert (maps.kind, maps.namespace) == (ConfigMap, "default")
            assert [one.name for one in await maps.list()] == ["a"]
            assert (await maps.create(config_map("b", x="1"))).data == {"x": "1"}
            assert (await client.api("cm", "default").get("b")).name == "b"
            with pytest.raises(NotFoundError, match="zz"):
                await maps.get("zz")
            assert [len(page) async for page in maps.pages(ListOptions(limit=1))] == [1, 1]
            assert (await client.impersonating("jane").version()).git_version
            with pytest.raises(AttributeError, match="gett"):
                maps.gett("x")
            assert "get_or_none" in dir(maps)

    run(main)


def test_gathered_requests_run_at_the_same_time() -> None:
    async def main() -> None:
        server = server_with("a")
        server.fail_next(20, verb="get", status=None, after=0.05)
        async with client_of(server) as client:
            maps = client.api(ConfigMap, namespace="default")
            before = trio.current_time()
            assert len(await asyncio.gather(*(maps.get("a") for _ in range(20)))) == 20
            assert trio.current_time() - before < 0.5

    run(main)


def test_a_request_is_cancelled_with_its_task() -> None:
    async def main() -> None:
        server = server_with("a")
        server.fail_next(1, verb="get", status=None, after=3600)
        async with client_of(server) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):  # long enough to send the request
                    await client.api(ConfigMap, namespace="default").get("a")
            assert (await client.api(ConfigMap, namespace="default").get("a")).name == "a"

    run(main)


def test_a_watch_is_closed_at_the_end_of_its_block() -> None:
    async def main() -> None:
        server = server_with("a")
        async with client_of(server) as client:
            maps = client.api(ConfigMap, namespace="default")
            async with maps.watch() as events:
                seen = []
                async for event in events:
                    seen.append((event.type, event.object.name))
                    if len(seen) == 1:
                        server.delete(ConfigMap, "a", namespace="default")
                    else:
                        break
                assert server.statistics().open_watches == 1
            assert seen == [("ADDED", "a"), ("DELETED", "a")]
            await until(lambda: not server.statistics().open_watches)
            with pytest.raises(TypeError, match="async with"):
                maps.watch().__aiter__()

    run(main)


def test_the_error_of_a_watch_reaches_its_reader() -> None:
    async def main() -> None:
        server = server_with("a")
        async with client_of(server) as client:
            with pytest.raises(NotFoundError):  # noqa: PT012
                async with client.api(ConfigMap, namespace="default").watch() as events:
                    async for _ in events:
                        raise NotFoundError("mine", code=404, reason="NotFound")
            server.fail_next(1, verb="watch", status=404)
            with pytest.raises(NotFoundError):
                async with client.api(ConfigMap, namespace="default").watch():
                    pass

    run(main)


def test_the_error_of_a_context_manager_of_trio_is_not_hidden_by_its_symptoms() -> None:
    @asynccontextmanager
    async def failing(client: Client) -> AsyncGenerator[None, None]:
        yield
        raise ValueError("the cause")

    async def main() -> None:
        async with client_of(server_with()) as client:
            with pytest.raises(ValueError, match="the cause") as raised:
                async with client.open(failing):
                    raise KeyError("symptom")
            assert isinstance(raised.value.__context__, KeyError)

    run(main)


def test_functions_that_take_a_client_or_an_api_run_in_trio() -> None:
    async def count(client: Client, kind: type[KubernetesObject], *, namespace: str) -> int:
        await trio.lowlevel.checkpoint()
        return len(await client.api(kind, namespace=namespace).list())

    async def main() -> None:
        server = server_with("a", "b")
        pod = Pod(spec=PodSpec(node_name="node-1", containers=(Container(name="app", image="app"),)))
        server.create(pod.evolve(metadata=config_map("web").metadata))
        scripted = server.script_pod("web")
        scripted.start()
        scripted.write_log("hello")
        async with client_of(server) as client:
            assert await client.run(count, ConfigMap, namespace="default") == 2
            pods = client.api(Pod, namespace="default")
            assert await pods.run(read_logs, "web") == "hello\n"
            with pytest.raises(AttributeError, match=r"run\(\)"):
                await read_logs(pods, "web")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
            async with pods.open(follow_logs, "web") as lines:
                assert (await anext(lines)).text == "hello"

    run(main)


def test_a_stream_of_bytes_is_read_and_written_in_asyncio() -> None:
    async def echo(stream: trio.abc.Stream) -> None:
        async for data in stream:
            await stream.send_all(data)

    async def main() -> None:
        server = server_with()
        server.create(
            Pod(
                metadata=ObjectMeta(name="web"),
                spec=PodSpec(node_name="node-1", containers=(Container(name="app", image="app"),)),
            )
        )
        server.script_pod("web").start()
        server.script_pod("web").on_connect(8080, echo)
        async with (
            client_of(server) as client,
            client.api(Pod, namespace="default").open(connect_port, "web", 8080) as stream,
        ):
            await stream.send_all(b"hello")
            assert await anext(stream) == b"hello"

    run(main)


def test_a_client_that_cannot_be_configured_says_why() -> None:
    async def main() -> None:
        with pytest.raises(ConfigError, match="nowhere"):
            async with aio.open_client(kubeconfig="/nowhere/config"):
                pass
        with pytest.raises(AttributeError, match="async with"):
            aio.open_client().api(ConfigMap)  # type: ignore[attr-defined]

    run(main)


def test_a_closed_client_refuses_requests() -> None:
    async def main() -> None:
        server = APIServer()
        async with client_of(server) as client:
            maps = client.api(ConfigMap, namespace="default")
        with pytest.raises(trio.ClosedResourceError):
            await maps.list()

    run(main)

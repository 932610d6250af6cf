"""``examples/web/dashboard.py``: its responses in this process, and its life under uvicorn."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from examples.web import dashboard
from tests.support.asyncio_programs import run
from tests.support.processes import KUBECONFIG, ROOT, Program, running, serving_in_a_thread
from trioformer.models import from_dict
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, serve_http

WEB = ROOT / "examples" / "web"
WAITING = {"name": "main", "state": {"waiting": {"reason": "ErrImagePull"}}}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
PULLING = {
    "phase": "Pending",
    "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ErrImagePull"}}}],
}


def pod(name: str, **status: Any) -> Pod:
    spec = {"containers": [{"name": "main", "image": "nginx"}]}
    metadata = {"name": name, "namespace": "default"}
    return from_dict(Pod, {"metadata": metadata, "spec": spec, "status": status})


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


# --- in this process ---


@asynccontextmanager
async def dashboard_client() -> AsyncIterator[httpx.AsyncClient]:
    """Run the app as a server of ASGI does."""
    async with dashboard.app.router.lifespan_context(dashboard.app) as state:

        async def app(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
            await dashboard.app({**scope, "state": dict(state or {})}, receive, send)

        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://dashboard") as client:
            yield client


def test_the_dashboard_has_the_pods_that_are_not_ready_and_why(kubeconfig: Path) -> None:
    server = APIServer()
    server.create(pod("a", **READY))
    server.create(pod("b", **PULLING))
    server.create(pod("c", phase="Succeeded"))

    async def main() -> None:
        async with dashboard_client() as client:
            assert "EventSource" in (await client.get("/")).text
            assert (await client.get("/namespaces/default")).json() == {"b": "ErrImagePull"}
            assert (await client.get("/namespaces/shop")).json() == {}

    with serving_in_a_thread(partial(serve_http, server)) as url:
        kubeconfig.write_text(KUBECONFIG.format(url=url))
        run(main)


# --- under uvicorn ---

CALM = ("--timeout-graceful-shutdown=1", "--port=0", "dashboard:app")


@pytest.fixture
async def served(nursery: trio.Nursery, kubeconfig: Path) -> APIServer:
    server = APIServer()
    url = await nursery.start(serve_http, server)
    await trio.Path(kubeconfig).write_text(KUBECONFIG.format(url=url))
    server.create(pod("a", **PULLING))
    return server


@asynccontextmanager
async def uvicorn(*arguments: str, folder: Path = WEB) -> AsyncIterator[tuple[Program, httpx.AsyncClient]]:
    """Serve the dashboard in a process in which every warning is reported."""
    with trio.fail_after(60):
        async with running("-X", "dev", "-m", "uvicorn", f"--app-dir={folder}", *arguments, *CALM) as program:
            url = await url_of(program)
            async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
                yield program, client


async def url_of(program: Program) -> str:
    pattern = re.compile(r"running on (http://[\d.:]+)")
    await program.wait_for(lambda _: any(map(pattern.search, program.errors)))
    return next(found[1] for found in map(pattern.search, program.errors) if found)


async def until_served(client: httpx.AsyncClient, expected: dict[str, str]) -> None:
    """Ask until a worker serves, and with it what is expected."""
    while True:
        with contextlib.suppress(httpx.TransportError):
            if (await client.get("/namespaces/default")).json() == expected:
                return
        await trio.sleep(0.05)


def complaints(program: Program) -> list[str]:
    """Return the warnings and tracebacks, but for the one of uvicorn's own, about the socket that it listens on."""
    listener = re.compile(r"unclosed <socket\.socket fd=\d+, .*, laddr=\('127\.0\.0\.1', \d+\)>$")
    lines = [line for line in program.errors if "Enable tracemalloc" not in line and not listener.search(line)]
    return [line for line in lines if re.search(r"Warning|Traceback", line)]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
async def test_sigterm_ends_uvicorn_with_an_open_stream(loop: str, served: APIServer, nursery: trio.Nursery) -> None:
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    send, events = trio.open_memory_channel[dict[str, str]](0)

    async def read(client: httpx.AsyncClient) -> None:
        with send, contextlib.suppress(httpx.RemoteProtocolError):  # uvicorn breaks the stream off
            async with client.stream("GET", "/events", timeout=30) as response:
                async for line in response.aiter_lines():
                    if line.startswith("data: "):
                        await send.send(json.loads(line.removeprefix("data: ")))

    async with uvicorn(f"--loop={loop}") as (program, client):
        nursery.start_soon(read, client)
        assert await events.receive() == {"pod": "default/a", "reason": "ErrImagePull"}
        served.create(pod("b", **PULLING))
        assert await events.receive() == {"pod": "default/b", "reason": "ErrImagePull"}
        served.patch(Pod, "a", {"status": READY})
        assert await events.receive() == {"pod": "default/a", "reason": ""}
        served.delete(Pod, "b")
        assert await events.receive() == {"pod": "default/b", "reason": ""}
        program.process.send_signal(signal.SIGTERM)
        assert await program.wait_until_over() == -signal.SIGTERM
        with pytest.raises(trio.EndOfChannel):
            await events.receive()
    assert "INFO:     Application shutdown complete." in program.errors
    # uvicorn cancels the stream, and logs that
    assert complaints(program) == ["Traceback (most recent call last):"]
    assert any("timeout graceful shutdown exceeded" in line for line in program.errors)


async def test_ctrl_c_ends_uvicorn(served: APIServer) -> None:
    async with uvicorn() as (program, client):
        assert (await client.get("/namespaces/default")).json() == {"a": "ErrImagePull"}
        assert await program.interrupt() in (0, -signal.SIGINT)
    assert complaints(program) == []


async def test_a_reloaded_app_has_a_new_cache(served: APIServer, tmp_path: Path) -> None:
    folder = tmp_path / "app"
    shutil.copytree(WEB, folder)
    async with uvicorn("--reload", f"--reload-dir={folder}", folder=folder) as (program, client):
        await until_served(client, {"a": "ErrImagePull"})
        source = folder / "dashboard.py"
        source.write_text(source.read_text().replace("filter(None, waiting)", '["changed"]'))
        await until_served(client, {"a": "changed"})
        program.process.send_signal(signal.SIGTERM)
        await program.wait_until_over()
    assert complaints(program) == []


async def test_each_worker_has_its_own_cache(served: APIServer) -> None:
    async with uvicorn("--workers=2") as (program, client):
        ready = "INFO:     Application startup complete."
        await program.wait_for(lambda _: program.errors.count(ready) == 2)
        await until_served(client, {"a": "ErrImagePull"})
        program.process.send_signal(signal.SIGTERM)
        assert await program.wait_until_over() == 0
    assert program.errors.count("INFO:     Application shutdown complete.") == 2
    assert complaints(program) == []

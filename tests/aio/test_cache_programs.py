"""Caches in whole programs of asyncio: Ctrl-C, tests with pytest-asyncio, prompts, and a loop that stops in between."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from functools import partial
from pathlib import Path

import httpx
import pytest
import trio

from tests.support.asyncio_programs import config_map, until
from tests.support.processes import KUBECONFIG, ROOT, running, serving_in_a_thread
from trioformer import aio
from trioformer.cache import InformerPhase
from trioformer.kubeconfig import load_config
from trioformer.models import to_dict
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer, serve_http

CELLS = """
from trioformer import aio
from trioformer.models.core_v1 import ConfigMap
maps = await aio.start_cache(ConfigMap, namespace="default")
await maps.wait_until_synced()
print("names:", *(found.name for found in maps))
print("first:", (await anext(maps.subscribe())).object.name)
await maps.aclose()
"""
"""What is typed at a prompt."""


@pytest.fixture
async def served(nursery: trio.Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> APIServer:
    """A server with a ConfigMap, whose kubeconfig programs find."""
    server = APIServer()
    server.create(config_map("a"))
    url = await nursery.start(serve_http, server)
    path = trio.Path(tmp_path / "kubeconfig")
    await path.write_text(KUBECONFIG.format(url=url))
    monkeypatch.setenv("KUBECONFIG", str(path))
    return server


async def test_ctrl_c_ends_a_program_with_an_open_cache(served: APIServer, tmp_path: Path) -> None:
    program = trio.Path(tmp_path / "program.py")
    await program.write_text("""
import asyncio
from trioformer import aio
from trioformer.models.core_v1 import ConfigMap

async def main():
    async with aio.open_cache(ConfigMap) as maps:
        async for notification in maps.subscribe():
            print(notification.object.name)

asyncio.run(main())
""")
    with trio.fail_after(30):
        async with running("-X", "dev", str(program)) as started:
            await started.wait_for_line("a")
            with trio.fail_after(5):
                assert await started.interrupt() == -signal.SIGINT
    assert started.errors[-1] == "KeyboardInterrupt"
    assert [line for line in started.errors if "Warning" in line] == []


async def test_a_test_suite_with_pytest_asyncio_can_open_caches(served: APIServer, tmp_path: Path) -> None:
    pytest.importorskip("pytest_asyncio")
    suite = trio.Path(tmp_path / "test_suite.py")
    await suite.write_text("""
import pytest
from trioformer import aio
from trioformer.models.core_v1 import ConfigMap

@pytest.fixture
async def maps():
    async with aio.open_cache(ConfigMap, namespace="default") as maps:
        await maps.wait_until_synced()
        yield maps

@pytest.mark.parametrize("number", [1, 2])
async def test_cache(maps, number):
    assert [found.name for found in maps] == ["a"]

async def test_client():
    async with aio.open_client() as client:
        assert (await client.api(ConfigMap, namespace="default").get("a")).name == "a"
""")
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(tmp_path)]
    command += ["-p", "no:cacheprovider", "-W", "error", "-o", "asyncio_mode=auto"]
    command += ["-o", "asyncio_default_fixture_loop_scope=function", str(suite)]
    ended = await trio.run_process(command, check=False, capture_stdout=True, cwd=tmp_path, env=with_path())
    assert ended.returncode == 0, ended.stdout.decode()
    assert "3 passed" in ended.stdout.decode()


def with_path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.mark.parametrize(
    "prompt", [["-m", "asyncio"], ["-m", "IPython", "--simple-prompt", "--no-banner", "--colors=nocolor"]]
)
async def test_a_cache_lives_from_one_line_of_a_prompt_to_the_next(
    prompt: list[str], served: APIServer, tmp_path: Path
) -> None:
    if "IPython" in prompt:
        pytest.importorskip("IPython")
    ended = await trio.run_process(
        [sys.executable, "-X", "dev", *prompt],
        stdin=CELLS.encode(),
        capture_stdout=True,
        capture_stderr=True,
        check=False,
        cwd=tmp_path,
        env={**with_path(), "IPYTHONDIR": str(tmp_path), "HOME": str(tmp_path)},
    )
    output, errors = ended.stdout.decode(), ended.stderr.decode()
    assert "names: a" in output
    assert "first: a" in output
    assert "Error" not in output + errors
    assert "Warning" not in output + errors


def test_a_cache_stands_still_while_its_loop_does(tmp_path: Path) -> None:
    server = APIServer()
    server.create(config_map("a"))

    async def start() -> aio.Cache[ConfigMap]:
        cache = await aio.start_cache(ConfigMap, config=config)
        await cache.wait_until_synced()
        await until(lambda: cache.state.phase is InformerPhase.WATCHING)
        return cache

    with serving_in_a_thread(partial(serve_http, server)) as url:
        path = tmp_path / "kubeconfig"
        path.write_text(KUBECONFIG.format(url=url))
        config = load_config(kubeconfig=path)
        loop = asyncio.new_event_loop()
        cache = loop.run_until_complete(start())
        made = httpx.post(f"{url}/api/v1/namespaces/default/configmaps", json=to_dict(config_map("b")), trust_env=False)
        assert made.status_code == 201
        assert [found.name for found in cache] == ["a"]
        loop.run_until_complete(asyncio.wait_for(until(lambda: len(cache) == 2), 10))
        assert sorted(found.name for found in cache) == ["a", "b"]
        loop.run_until_complete(cache.aclose())
        loop.close()

"""The blocks of ``docs/howto/repl.rst`` that run trio in a thread, and so not beside the other blocks of the page."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import trio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from trioformer.cache import InformerPhase
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, serve_http

PAGE = Path(__file__).resolve().parents[2] / "docs/howto/repl.rst"
NOT_RUN = ".. not run: "
POD = "web-7d9c8b6f5-vj794"
"""As a simulated cluster names its pods; the page must not depend on it."""


@asynccontextmanager
async def served() -> AsyncIterator[str]:
    async with trio.open_nursery() as nursery:
        server = APIServer()
        url = await nursery.start(serve_http, server)
        server.create(Pod(metadata=ObjectMeta(name=POD, namespace="default")))
        yield url
        nursery.cancel_scope.cancel()


@pytest.fixture
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal("trio") as portal:
        yield portal


@pytest.fixture
def kubeconfig(portal: BlockingPortal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with portal.wrap_async_context_manager(served()) as url:
        path = tmp_path / "kubeconfig"
        path.write_text(
            '{"current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a"}}],'
            f' "clusters": [{{"name": "a", "cluster": {{"server": "{url}"}}}}]}}'
        )
        monkeypatch.setenv("KUBECONFIG", str(path))
        yield path


def blocks_with_a_thread() -> list[str]:
    """Return the code of the blocks that the ordinary test leaves to this one."""
    found = []
    for part in PAGE.read_text().split(NOT_RUN)[1:]:
        lines = part.split(".. code-block:: python\n", 1)[1].splitlines()
        end = next((number for number, line in enumerate(lines) if line and not line.startswith("   ")), len(lines))
        found.append(dedent("\n".join(lines[:end])))
    return found


def test_a_client_and_an_informer_live_in_a_thread_beside_a_prompt(kubeconfig: Path) -> None:
    first, second = blocks_with_a_thread()
    names: dict[str, Any] = {}
    exec(first, names)  # of the page
    try:
        assert names["portal"].call(names["pods"].get, POD).name == POD
        exec(second, names)
        assert [pod.name for pod in names["informer"].lister.list()] == [POD]
        assert names["portal"].call(lambda: names["informer"].state.phase) != InformerPhase.FAILED
    finally:
        names["stack"].close()
    with pytest.raises(RuntimeError, match="portal is not running"):
        names["portal"].call(names["pods"].get, POD)


def test_the_prompt_of_trio_awaits_and_keeps_a_client_open(kubeconfig: Path) -> None:
    typed = PAGE.read_text().split("The prompt of trio\n")[1].split("A watch or an informer")[0]
    lines = [line.strip().removeprefix(">>> ") for line in typed.splitlines() if line.strip().startswith(">>> ")]
    ended = subprocess.run(
        [sys.executable, "-m", "trio"],
        input="\n".join([*lines, ""]),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Error" not in ended.stderr
    assert str([POD]) in ended.stdout

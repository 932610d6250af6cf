"""Copies that are cancelled at every step: nothing is left on either side, and no part of a file."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.support.remains import OPEN_FILES, Where, cancel_at_each_step, serving
from tests.support.trees import describe_tree
from trioformer.client import Api
from trioformer.models.core_v1 import Pod
from trioformer.pods import copy_from_pod, copy_to_pod
from trioformer.testing import APIServer, ScriptedPod, ScriptedProcess

pytestmark = pytest.mark.skipif(not OPEN_FILES.exists(), reason="counts the file descriptors that Linux knows")


async def copy_file_from(pods: Api[Pod], here: Path) -> None:
    await copy_from_pod(pods, "web-0", "file", here / "copy", container="main")


async def copy_directory_from(pods: Api[Pod], here: Path) -> None:
    await copy_from_pod(pods, "web-0", "directory", here / "copy", container="main")


async def copy_file_to(pods: Api[Pod], here: Path) -> None:
    await copy_to_pod(pods, "web-0", here / "given" / "file", "copy", container="main")


async def copy_directory_to(pods: Api[Pod], here: Path) -> None:
    await copy_to_pod(pods, "web-0", here / "given", "copy", container="main")


@pytest.mark.parametrize(
    ("operation", "where"),
    [
        (copy_directory_from, "memory"),
        (copy_file_to, "memory"),
        (copy_file_from, "socket"),
        (copy_directory_to, "socket"),
    ],
)
async def test_a_cancelled_copy_leaves_nothing_on_either_side(
    operation: Callable[[Api[Pod], Path], Awaitable[None]],
    where: Where,
    web: ScriptedPod,
    api_server: APIServer,
    here: Path,
) -> None:
    (here / "given" / "inner" / "inner").mkdir(parents=True)
    data = os.urandom(70_000)
    (here / "given" / "file").write_bytes(data)
    (here / "given" / "inner" / "inner" / "file").write_text("x")
    archives: dict[str, bytes] = {}
    for name, path in (("file", here / "given" / "file"), ("directory", here / "given")):
        with io.BytesIO() as buffer:
            with tarfile.open(fileobj=buffer, mode="w") as archive:
                archive.add(path, name)
            archives[name] = buffer.getvalue()
    running = 0

    async def tar(process: ScriptedProcess) -> None:
        nonlocal running
        running += 1
        try:
            if process.command[0] == "tar":
                await process.stdout.send_all(archives[process.command[-1]])
            else:
                await process.stdin.receive_all()
        finally:
            running -= 1

    web.on_exec(tar)
    async with serving(where, api_server) as open_client:

        async def once() -> None:
            async with open_client() as client:
                await operation(client.api(Pod, namespace="default"), here)

        def check() -> None:
            assert running == 0
            found = describe_tree(here)
            assert [each for each in found if each.endswith(".part")] == []
            copy = here / "copy"
            if copy.is_dir():
                assert found.get("copy/file", ("0o644", data)) == ("0o644", data)
                shutil.rmtree(copy)
            elif copy.exists():
                assert copy.read_bytes() == data
                copy.unlink()

        assert await cancel_at_each_step(once, after_each=check) > 15

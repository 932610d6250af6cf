"""Files that are copied to a container in which a real tar runs."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from tests.support.containers import LocalContainer
from tests.support.trees import describe_tree, make_tree
from trioformer.client import Api
from trioformer.errors import ConnectionFailedError, CopyFailedError, NotFoundError
from trioformer.models.core_v1 import Pod
from trioformer.pods import copy_from_pod, copy_to_pod
from trioformer.testing import ScriptedPod, ScriptedProcess


async def test_a_file_is_copied_with_its_permissions(pods: Api[Pod], container: LocalContainer, here: Path) -> None:
    for size in [0, 261_632, 1_000_003]:
        data = os.urandom(size)
        (here / "file").write_bytes(data)
        (here / "file").chmod(0o4640)
        (container.directory / "copy").write_text("what was there before")
        result = await copy_to_pod(pods, "web-0", here / "file", "copy")
        assert (result.files, result.directories, result.links, result.bytes) == (1, 0, 0, size)
        assert (result.skipped, result.skipped_count) == ({}, 0)
        assert describe_tree(container.directory) == {"copy": ("0o640", data)}


async def test_a_directory_is_copied_with_all_that_is_in_it(
    pods: Api[Pod], container: LocalContainer, here: Path
) -> None:
    make_tree(here / "data")
    (here / "data").chmod(0o2750)
    result = await copy_to_pod(pods, "web-0", here / "data", "copy")
    copied = container.directory / "copy"
    assert describe_tree(copied) == describe_tree(here / "data")
    assert copied.stat().st_mode & 0o7777 == 0o750
    assert (result.files, result.directories, result.links) == (11, 6, 3)
    # Once more, into what is there.
    (copied / "own").write_text("stays")
    (copied / "empty").write_text("is replaced")
    copied.chmod(0o700)
    await copy_to_pod(pods, "web-0", f"{here}/data/", str(copied))
    assert (copied / "own").read_text() == "stays"
    (copied / "own").unlink()
    assert describe_tree(copied) == describe_tree(here / "data")
    assert copied.stat().st_mode & 0o7777 == 0o700
    # And back.
    await copy_from_pod(pods, "web-0", "copy", here / "back")
    assert describe_tree(here / "back") == describe_tree(here / "data")


async def test_targets_are_no_flags_and_no_code(pods: Api[Pod], container: LocalContainer, here: Path) -> None:
    (here / "data").mkdir()
    (here / "data" / "file").write_text("x")
    (container.directory / "a b").mkdir()
    for target in ("-copy", "./a b/$(x)", "'\"\\", "new\nline"):
        await copy_to_pod(pods, "web-0", here / "data", target)
        await copy_to_pod(pods, "web-0", here / "data" / "file", f"{target}/")
        await copy_to_pod(pods, "web-0", here / "data" / "file", f"{target}.file")
        assert sorted(describe_tree(container.directory / target)) == ["file"]
        assert (container.directory / f"{target}.file").read_text() == "x"


async def test_a_target_with_a_slash_is_the_directory_to_copy_into(
    pods: Api[Pod], container: LocalContainer, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "real").mkdir()
    (here / "real" / "file").write_text("x")
    (here / "data").symlink_to("real")
    await copy_to_pod(pods, "web-0", here / "data", "./")
    await copy_to_pod(pods, "web-0", here / "data" / "file", f"{container.directory}/")
    monkeypatch.chdir(here / "real")
    await copy_to_pod(pods, "web-0", ".", "./")
    assert sorted(describe_tree(container.directory)) == ["data", "data/file", "file", "real", "real/file"]


async def test_what_is_no_file_is_skipped_and_named(pods: Api[Pod], container: LocalContainer, here: Path) -> None:
    data = here / "data"
    (data / "inner").mkdir(parents=True)
    os.mkfifo(data / "fifo")
    (data / "absolute").symlink_to("/etc/passwd")
    (data / "inner" / "above").symlink_to("../../above")
    (data / "file").write_text("x")
    result = await copy_to_pod(pods, "web-0", data, "copy")
    assert list(result.skipped) == ["absolute", "fifo", "inner/above"]
    assert result.skipped["fifo"] == "a FIFO"
    assert "/etc/passwd" in result.skipped["absolute"]
    assert result.skipped_count == 3
    assert sorted(describe_tree(container.directory / "copy")) == ["file", "inner"]
    with pytest.raises(CopyFailedError, match=r"fifo' is a FIFO"):
        await copy_to_pod(pods, "web-0", data / "fifo", "fifo")


async def test_a_connection_that_breaks_is_an_error_and_leaves_no_part_of_a_file(
    pods: Api[Pod], web: ScriptedPod, container: LocalContainer, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "file").write_bytes(bytes(20_000_000))
    (container.directory / "copy").write_text("old")
    has_begun = trio.Event()
    pieces = 0

    def count(function: Callable[..., Awaitable[None]], data: bytes) -> None:
        nonlocal pieces
        run(function, data)
        pieces += 1
        if pieces == 4:
            trio.from_thread.run_sync(has_begun.set)

    run = trio.from_thread.run
    monkeypatch.setattr(trio.from_thread, "run", count)

    async def disconnect(process: ScriptedProcess) -> int:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(container.execute, process)
            await has_begun.wait()
            await process.disconnect()
        return 0

    web.on_exec(disconnect)
    with pytest.raises(ConnectionFailedError, match="the connection ended before the process did"):
        await copy_to_pod(pods, "web-0", here / "file", "copy")
    await container.wait_idle()
    assert describe_tree(container.directory) == {"copy": ("0o644", b"old")}


async def test_a_target_that_cannot_be_written_is_an_error(
    pods: Api[Pod], container: LocalContainer, here: Path
) -> None:
    (here / "file").write_bytes(bytes(20_000_000))
    (here / "data").mkdir()
    (container.directory / "data").mkdir()
    (container.directory / "file").touch()
    begin = f"copy to pods/web-0 in namespace default: {here}/file to none/copy: tar failed with exit code 2: "
    with pytest.raises(CopyFailedError, match=f"^{re.escape(begin)}tar: none: Cannot open: No such file"):
        await copy_to_pod(pods, "web-0", here / "file", "none/copy")
    with pytest.raises(CopyFailedError, match=r"exit code 1: \./data exists and is not a file$"):
        await copy_to_pod(pods, "web-0", here / "file", "data")
    with pytest.raises(CopyFailedError, match=r"exit code 1: mkdir: .*file.*: File exists$"):
        await copy_to_pod(pods, "web-0", here / "data", "file")
    with pytest.raises(CopyFailedError, match=r"exit code 1: mkdir: .*none/data.*: No such file or directory$"):
        await copy_to_pod(pods, "web-0", here / "data", "none/data")
    with pytest.raises(CopyFailedError, match=r"'\.\.' .* name of a file$"):
        await copy_to_pod(pods, "web-0", here / "file", "..")
    assert sorted(describe_tree(container.directory)) == ["data", "file"]


async def test_a_container_without_programs_is_an_error(
    pods: Api[Pod], web: ScriptedPod, here: Path, tmp_path: Path
) -> None:
    (here / "file").write_bytes(bytes(20_000_000))
    needs = "copying requires sh, tar, mv and rm in the container$"
    with pytest.raises(CopyFailedError, match=f"executable file not found .*; {needs}"):
        await copy_to_pod(pods, "web-0", here / "file", "copy")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "mv", "rm"):
        (programs / name).symlink_to(shutil.which(name) or name)
    container = LocalContainer(tmp_path, path=str(programs))
    web.on_exec(container.execute)
    with pytest.raises(CopyFailedError, match=f"exit code 127: sh: .*tar: not found; {needs}"):
        await copy_to_pod(pods, "web-0", here / "file", "copy")


async def test_a_tar_that_ends_early_is_an_error(pods: Api[Pod], web: ScriptedPod, here: Path) -> None:
    (here / "file").write_bytes(bytes(20_000_000))

    async def ignore(process: ScriptedProcess) -> int:
        return 0

    web.on_exec(ignore)
    with pytest.raises(CopyFailedError, match="tar exited before it had read the whole archive"):
        await copy_to_pod(pods, "web-0", here / "file", "copy")


async def test_a_source_that_cannot_be_read_is_an_error(
    pods: Api[Pod], container: LocalContainer, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CopyFailedError, match=f"none to copy: '{here}/none': No such file or directory$"):
        await copy_to_pod(pods, "web-0", here / "none", "copy")
    assert container.commands == []
    (here / "data").mkdir()

    def fail(fd: int) -> list[str]:
        raise PermissionError(13, "Permission denied", fd)  # root may read everything

    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", fail)
        with pytest.raises(CopyFailedError, match=f"data to copy: '{here}/data/': Permission denied$"):
            await copy_to_pod(pods, "web-0", here / "data", "copy")
    with pytest.raises(NotFoundError, match='pods "none" not found'):
        await copy_to_pod(pods, "none", here, "copy")

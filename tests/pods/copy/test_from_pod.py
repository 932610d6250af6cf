"""Files that are copied from a container in which a real tar runs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import trio

from tests.support.containers import LocalContainer
from tests.support.trees import describe_tree, make_tree
from trioformer.client import Api
from trioformer.errors import ConnectionFailedError, CopyFailedError
from trioformer.models.core_v1 import Pod
from trioformer.pods import copy_from_pod
from trioformer.testing import ScriptedPod, ScriptedProcess


async def test_a_file_is_copied_with_its_permissions(pods: Api[Pod], container: LocalContainer, here: Path) -> None:
    data = os.urandom(1_000_003)
    (container.directory / "dump").write_bytes(data)
    (container.directory / "dump").chmod(0o4640)
    (here / "copy").write_text("what was there before is longer" * 100_000)
    result = await copy_from_pod(pods, "web-0", "dump", here / "copy")
    assert (result.files, result.directories, result.links, result.bytes) == (1, 0, 0, len(data))
    assert (result.skipped, result.skipped_count) == ({}, 0)
    assert describe_tree(here) == {"copy": ("0o640", data)}


async def test_a_directory_is_copied_with_all_that_is_in_it(
    pods: Api[Pod], container: LocalContainer, here: Path
) -> None:
    make_tree(container.directory / "data")
    (container.directory / "data").chmod(0o2750)
    result = await copy_from_pod(pods, "web-0", str(container.directory / "data"), here / "copy")
    assert describe_tree(here / "copy") == describe_tree(container.directory / "data")
    assert (here / "copy").stat().st_mode & 0o7777 == 0o750
    assert (result.files, result.directories, result.links) == (11, 6, 3)
    # Once more, into what is there.
    (here / "copy" / "own").write_text("stays")
    (here / "copy" / "empty").write_text("is replaced")
    (here / "copy").chmod(0o700)
    await copy_from_pod(pods, "web-0", "data/", str(here / "copy"))
    assert (here / "copy" / "own").read_text() == "stays"
    (here / "copy" / "own").unlink()
    assert describe_tree(here / "copy") == describe_tree(container.directory / "data")
    assert (here / "copy").stat().st_mode & 0o7777 == 0o700


async def test_a_directory_has_many_names(pods: Api[Pod], container: LocalContainer, here: Path) -> None:
    (container.directory / "data" / "a").mkdir(parents=True)
    (container.directory / "data" / "file").write_text("x")
    for number, source in enumerate(("data/.", "data/a/..", f"{container.directory}/data")):
        await copy_from_pod(pods, "web-0", source, here / str(number))
        assert sorted(describe_tree(here / str(number))) == ["a", "file"]


async def test_a_target_with_a_slash_is_the_directory_to_copy_into(
    pods: Api[Pod], container: LocalContainer, here: Path
) -> None:
    (container.directory / "-file").write_text("x")
    (container.directory / "data").mkdir()
    await copy_from_pod(pods, "web-0", "-file", f"{here}/")
    await copy_from_pod(pods, "web-0", "data/", f"{here}/")
    assert sorted(describe_tree(here)) == ["-file", "data"]
    for source in ("", "/"):
        with pytest.raises(ValueError, match=r"name|empty"):
            await copy_from_pod(pods, "web-0", source, f"{here}/")


async def test_a_source_that_is_a_link_is_followed(pods: Api[Pod], container: LocalContainer, here: Path) -> None:
    (container.directory / "data" / "v1").mkdir(parents=True)
    (container.directory / "data" / "v1" / "file").write_text("x")
    (container.directory / "current").symlink_to(container.directory / "data" / "latest")
    (container.directory / "data" / "latest").symlink_to("../data/v1/")
    (container.directory / "round").symlink_to("round")
    (container.directory / "to-file").symlink_to("current/file")
    await copy_from_pod(pods, "web-0", "current", here / "copy")
    assert sorted(describe_tree(here / "copy")) == ["file"]
    await copy_from_pod(pods, "web-0", "to-file", here / "file")
    assert (here / "file").read_text() == "x"
    with pytest.raises(CopyFailedError, match=r"round to .*: more than 40 symbolic links to follow"):
        await copy_from_pod(pods, "web-0", "round", here / "round")


async def test_a_target_that_is_a_link_is_followed(pods: Api[Pod], container: LocalContainer, here: Path) -> None:
    (container.directory / "file").write_text("new")
    (here / "real").write_text("old")
    (here / "link").symlink_to("real")
    await copy_from_pod(pods, "web-0", "file", here / "link")
    assert describe_tree(here) == {"real": ("0o644", b"new"), "link": "real"}


async def test_what_is_no_file_is_skipped_and_named(pods: Api[Pod], container: LocalContainer, here: Path) -> None:
    data = container.directory / "data"
    data.mkdir()
    os.mkfifo(data / "fifo")
    (data / "absolute").symlink_to("/etc/passwd")
    (data / "above").symlink_to("../above")
    (data / "file").write_text("x")
    os.link(data / "file", data / "same")
    result = await copy_from_pod(pods, "web-0", "data", here / "copy")
    assert sorted(result.skipped) == ["above", "absolute", "fifo"]
    assert result.skipped["fifo"] == "a FIFO"
    assert "/etc/passwd" in result.skipped["absolute"]
    assert result.skipped_count == 3
    assert sorted(describe_tree(here / "copy")) == ["file", "same"]
    assert (here / "copy" / "file").samefile(here / "copy" / "same")
    await copy_from_pod(pods, "web-0", "data", here / "copy")  # the two names are the same file already
    assert sorted(describe_tree(here / "copy")) == ["file", "same"]
    with pytest.raises(CopyFailedError, match=r"data/fifo to .*: the source is a FIFO$"):
        await copy_from_pod(pods, "web-0", "data/fifo", here / "fifo")


async def test_a_sparse_file_stays_sparse(pods: Api[Pod], web: ScriptedPod, here: Path, tmp_path: Path) -> None:
    container = LocalContainer(tmp_path)
    with (tmp_path / "sparse").open("wb") as file:
        for index in range(60):
            file.seek(index * 1_000_000)
            file.write(b"data")
        file.truncate(70_000_000)

    for flags in (["-S"], ["-S", "--format=posix"], ["-S", "--format=posix", "--sparse-version=0.1"]):

        async def with_holes(process: ScriptedProcess, flags: list[str] = flags) -> int:
            process.command = ("tar", *flags, *process.command[1:])
            return await container.execute(process)

        web.on_exec(with_holes)
        result = await copy_from_pod(pods, "web-0", "sparse", here / "copy")
        assert result.bytes < 1_000_000
        found = (here / "copy").stat()
        assert (found.st_size, found.st_blocks * 512 < 2_000_000) == (70_000_000, True)
        assert (here / "copy").read_bytes() == (tmp_path / "sparse").read_bytes()
        (here / "copy").unlink()


async def test_what_tar_cannot_read_is_an_error_after_all_the_rest(
    pods: Api[Pod], web: ScriptedPod, container: LocalContainer, here: Path
) -> None:
    (container.directory / "data").mkdir()
    (container.directory / "data" / "file").write_text("x")

    async def warn(process: ScriptedProcess) -> int:
        await process.stderr.send_all(b"x" * 2_000_000 + b"\ntar: data/secret: Permission denied\n")
        await container.execute(process)
        return 1

    web.on_exec(warn)
    with pytest.raises(CopyFailedError, match=r"tar failed with exit code 1: .*data/secret: Permission denied$"):
        await copy_from_pod(pods, "web-0", "data", here / "copy")
    assert sorted(describe_tree(here / "copy")) == ["file"]


async def test_a_source_that_does_not_exist_is_an_error(pods: Api[Pod], container: LocalContainer, here: Path) -> None:
    begin = f"^copy from pods/web-0 in namespace default: /none/file to {here}/copy: tar failed with exit code 2: "
    with pytest.raises(CopyFailedError, match=f"{begin}tar: .*No such file or directory"):
        await copy_from_pod(pods, "web-0", "/none/file", here / "copy")
    assert describe_tree(here) == {}


async def test_a_container_without_tar_is_an_error(pods: Api[Pod], web: ScriptedPod, here: Path) -> None:
    with pytest.raises(CopyFailedError, match=r"executable file not found .*; copying requires tar in the container$"):
        await copy_from_pod(pods, "web-0", "file", here / "copy")
    web.script_command(["tar", "-cf", "-", "-C", ".", "file"], stderr="exec: tar: not found\n", exit_code=127)
    with pytest.raises(CopyFailedError, match="exit code 127: exec: tar: not found; copying requires tar in the "):
        await copy_from_pod(pods, "web-0", "file", here / "copy")


async def test_a_target_that_cannot_be_written_is_an_error(
    pods: Api[Pod], container: LocalContainer, here: Path
) -> None:
    (container.directory / "data" / "inner").mkdir(parents=True)
    (container.directory / "data" / "inner" / "file").write_text("x")
    begin = f"copy from pods/web-0 in namespace default: data/inner/file to {here}/none/copy"
    with pytest.raises(CopyFailedError, match=f"^{begin}: '{here}/none': No such file or directory$"):
        await copy_from_pod(pods, "web-0", "data/inner/file", here / "none" / "copy")
    with pytest.raises(CopyFailedError, match=f"'{here}/none/copy': No such file or directory$"):
        await copy_from_pod(pods, "web-0", "data", here / "none" / "copy")
    (here / "inner" / "file").mkdir(parents=True)
    with pytest.raises(CopyFailedError, match=f"'{here}/inner/file' is a directory and "):
        await copy_from_pod(pods, "web-0", "data", here)
    problem = f"'{here}' is a directory; to copy the file into it, pass '{here}/file' as the target$"
    with pytest.raises(CopyFailedError, match=problem):
        await copy_from_pod(pods, "web-0", "data/inner/file", here)
    (here / "file").touch()
    with pytest.raises(CopyFailedError, match=f"'{here}/file': Not a directory$"):
        await copy_from_pod(pods, "web-0", "data", here / "file")
    os.mkfifo(here / "fifo")
    with pytest.raises(CopyFailedError, match="fifo' is not a regular file, so it is not replaced"):
        await copy_from_pod(pods, "web-0", "data/inner/file", here / "fifo")
    shutil.rmtree(here / "inner")
    (here / "inner").symlink_to(here)
    with pytest.raises(CopyFailedError, match="inner' is not a directory"):
        await copy_from_pod(pods, "web-0", "data", here)


async def test_a_connection_that_breaks_leaves_no_part_of_a_file(
    pods: Api[Pod], web: ScriptedPod, container: LocalContainer, here: Path
) -> None:
    (container.directory / "file").write_bytes(bytes(3_000_000))
    (here / "copy").write_text("old")

    async def disconnect(process: ScriptedProcess) -> int:
        await process.stdout.send_all((await trio.Path(archive).read_bytes())[:1_000_000])
        await process.disconnect()
        return 0

    archive = shutil.make_archive(str(here.parent / "archive"), "tar", container.directory, "file")
    web.on_exec(disconnect)
    with pytest.raises(ConnectionFailedError, match="the connection ended before the process did"):
        await copy_from_pod(pods, "web-0", "file", here / "copy")
    assert describe_tree(here) == {"copy": ("0o644", b"old")}

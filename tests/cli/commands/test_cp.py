"""``cp``: what is copied where, and what is wrong with arguments; a real tar runs in the pod."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.cli import run
from tests.support.containers import LocalContainer
from tests.support.trees import describe_tree
from trioformer.testing import APIServer, ScriptedPod, ScriptedProcess

LONG = "n" * 300


def add_pod(server: APIServer, name: str, *containers: str, namespace: str = "default", phase: str = "") -> ScriptedPod:
    found = [{"name": each, "image": "x"} for each in containers or ("main",)]
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}}
    server.create({**head, "spec": {"nodeName": "node-1", "containers": found}, "status": {"phase": phase or None}})
    return server.script_pod(name, namespace=namespace)


@pytest.fixture
def container(api_server: APIServer, tmp_path: Path) -> LocalContainer:
    directory = tmp_path / "container"
    (directory / "tmp").mkdir(parents=True)
    found = LocalContainer(directory)
    add_pod(api_server, "one").on_exec(found.execute)
    return found


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a file and a directory."""
    directory = tmp_path / "here"
    (directory / "site" / "inner").mkdir(parents=True)
    (directory / "site" / "inner" / "page").write_text("hello")
    (directory / "file").write_text("content")
    monkeypatch.chdir(directory)
    return directory


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("file", "one:copy", ["copy"]),
        ("file", "default/one:tmp/", ["tmp/file"]),
        ("site", "one:www", ["www/inner/page"]),
        ("site/", "one:tmp", ["tmp/site/inner/page"]),
        ("site/inner/.", "one:tmp", ["tmp/inner/page"]),
    ],
)
async def test_files_are_copied_to_where_kubectl_copies_them(
    source: str, target: str, expected: list[str], api_server: APIServer, container: LocalContainer, here: Path
) -> None:
    result = await run(api_server, "cp", source, target)
    assert (result.code, result.out, result.err) == (0, "", "")
    found = describe_tree(container.directory)
    assert [name for name, each in found.items() if isinstance(each, tuple)] == expected


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("one:log", "copy", ["copy"]),
        ("one:data", "copy", ["copy/a/b"]),
        ("one:data/", "new/folders/copy", ["new/folders/copy/a/b"]),
        ("default/one:data", "site", ["site/a/b", "site/inner/page"]),
        ("one:{container}/data/a", "./x/", ["x/b"]),
    ],
)
async def test_files_are_copied_from_where_kubectl_copies_them(
    source: str, target: str, expected: list[str], api_server: APIServer, container: LocalContainer, here: Path
) -> None:
    (container.directory / "data" / "a").mkdir(parents=True)
    (container.directory / "data" / "a" / "b").write_text("b")
    (container.directory / "log").write_text("line")
    result = await run(api_server, "cp", source.format(container=container.directory), target)
    assert (result.code, result.out, result.err) == (0, "", "")
    found = [name for name, each in describe_tree(here).items() if isinstance(each, tuple)]
    assert [each for each in found if each.split("/")[0] == expected[0].split("/")[0]] == expected


async def test_what_is_skipped_is_a_warning(api_server: APIServer, container: LocalContainer, here: Path) -> None:
    (container.directory / "data").mkdir()
    os.mkfifo(container.directory / "data" / "fifo")
    result = await run(api_server, "cp", "one:data", "copy")
    assert (result.code, result.err) == (0, "warning: skipping fifo: a FIFO\n")


async def test_names_of_the_container_are_no_escape_sequences_and_no_lines(
    api_server: APIServer, container: LocalContainer, here: Path
) -> None:
    (container.directory / "data").mkdir()
    os.mkfifo(container.directory / "data" / "\x1b[31m\nerror: forged")
    result = await run(api_server, "cp", "one:data", "copy")
    assert (result.code, result.err) == (0, "warning: skipping \\x1b[31m error: forged: a FIFO\n")


async def test_the_first_container_is_the_default_and_is_named(api_server: APIServer, here: Path) -> None:
    api_server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    pod = add_pod(api_server, "two", "a", "b", namespace="shop")
    container = LocalContainer(here / "site")
    used: list[str] = []

    async def execute(process: ScriptedProcess) -> int:
        used.append(process.container)
        return await container.execute(process)

    pod.on_exec(execute)
    result = await run(api_server, "cp", "-n", "shop", "two:inner", "copy")
    assert (result.code, result.err, used) == (0, 'Defaulted container "a" out of: a, b\n', ["a"])
    assert (await run(api_server, "cp", "shop/two:inner", "copy", "-c", "b")).code == 0
    assert used == ["a", "b"]
    result = await run(api_server, "cp", "shop/two:inner", "copy", "-c", "c")
    assert (result.code, result.err) == (1, "error: container c is not valid for pod two out of: a, b\n")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "source and destination are required"),
        (["file"], "source and destination are required"),
        (["file", "one:x", "y"], "source and destination are required"),
        (["one:x", "one:y"], "one of src or dest must be a local file specification"),
        (["x", "y"], "one of src or dest must be a remote file specification"),
        (["file", "one:"], "filepath can not be empty"),
        (["one:x", ""], "filepath can not be empty"),
        (["file", ":x"], "filespec must match the canonical format: [[namespace/]pod:]file/path"),
        (["file", "a/b/c:x"], "filespec must match the canonical format: [[namespace/]pod:]file/path"),
        (["none", "one:x"], "none doesn't exist in local filesystem"),
        ([f"{LONG}/x", "one:x"], f"{LONG}/x doesn't exist in local filesystem"),
        (["one:tmp", "file/sub/x"], "mkdir file/sub: not a directory"),
        (["one:tmp", "/proc/none/x"], "mkdir /proc/none: no such file or directory"),
    ],
    ids=lambda value: " ".join(value).replace(LONG, "long") if isinstance(value, list) else "",
)
async def test_wrong_arguments_are_errors(
    arguments: list[str], problem: str, api_server: APIServer, container: LocalContainer, here: Path
) -> None:
    result = await run(api_server, "cp", *arguments)
    assert (result.code, result.out, result.err) == (1, "", f"error: {problem}\n")


async def test_what_cannot_be_copied_is_an_error_of_one_line(
    api_server: APIServer, container: LocalContainer, here: Path
) -> None:
    add_pod(api_server, "done", phase="Succeeded")
    add_pod(api_server, "bare")
    where = "in namespace default"
    (here / "site" / "a.txt").touch()
    (container.directory / "a.txt").touch()
    into = f"'{here}/site' is a directory; to copy the file into it, pass '{here}/site/a.txt' as the target"
    for arguments, problem in (
        (["one:a.txt", "site/"], f"error: copy from pods/one {where}: a.txt to site: {into}\n"),
        (["nobody:x", "y"], 'Error from server (NotFound): pods "nobody" not found'),
        (
            ["one:none", "y"],
            f"error: copy from pods/one {where}: none to y: tar failed with exit code 2: tar: none:",
        ),
        (["one:tmp", "file"], f"error: copy from pods/one {where}: tmp to file: '{here}/file': Not a directory"),
        (["file", "one:no/such"], f"error: copy to pods/one {where}: file to no/such: tar failed with exit code 2"),
        (["file", "done:x"], "error: cannot exec into a container in a completed pod; current phase is Succeeded"),
        (["file", "bare:x"], f"error: copy to pods/bare {where}: file to x: tar failed: Internal error occurred"),
    ):
        result = await run(api_server, "cp", *arguments)
        assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
        assert result.err.startswith(problem)
    assert "copying requires sh, tar, mv and rm in the container" in result.err

"""Files to and from containers, through kube-apiserver with kwok's kubelet and embedded, beside ``kubectl cp``."""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.e2e.kubelet import commands_in, pod_of, running_kubelet
from tests.support.containers import LocalContainer
from tests.support.trees import describe_tree, make_tree
from trioformer import open_client
from trioformer.client import Api
from trioformer.errors import BadRequestError, CopyFailedError, NotFoundError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import from_dict
from trioformer.models.core_v1 import Pod
from trioformer.pods import copy_from_pod, copy_to_pod
from trioformer.testing import APIServer, ControlPlane, serve_http

MEBIBYTE = 1024 * 1024


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working directory of both containers."""
    return tmp_path_factory.mktemp("container")


@pytest.fixture(scope="module")
def cluster(assets: Path, tmp_path_factory: pytest.TempPathFactory, container: Path) -> Iterator[ControlPlane]:
    """A control plane with a pod whose commands are executed on this machine."""
    directory = tmp_path_factory.mktemp("assets")
    with running_kubelet(assets, directory, commands_in(container), pod=pod_of("one")) as running:
        yield running


@asynccontextmanager
async def embedded(container: Path) -> AsyncIterator[str]:
    """Yield the URL of an embedded server with such a pod."""
    server = APIServer()
    server.create(from_dict(Pod, pod_of("one")))
    server.script_pod("one").on_exec(LocalContainer(container).execute)
    async with trio.open_nursery() as nursery:
        yield await nursery.start(serve_http, server)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def opened(kind: str, cluster: ControlPlane, container: Path) -> AsyncIterator[Api[Pod]]:
    """Yield the API of pods of either server."""
    if kind == "real":
        async with open_client(kubeconfig=cluster.kubeconfig) as client:
            yield client.api(Pod, namespace="default")
        return
    async with embedded(container) as url, open_client(ClusterConfig(server=url)) as client:
        yield client.api(Pod, namespace="default")


both = pytest.mark.parametrize("kind", ["embedded", "real"])


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@both
async def test_100_mebibytes_are_copied_with_constant_memory(
    kind: str, cluster: ControlPlane, container: Path, tmp_path: Path
) -> None:
    large, size = tmp_path / "large", 100 * MEBIBYTE
    with large.open("wb") as file:
        for _ in range(100):
            file.write(os.urandom(MEBIBYTE))
    (tmp_path / "small").write_bytes(bytes(MEBIBYTE))
    async with opened(kind, cluster, container) as pods:
        await copy_to_pod(pods, "one", tmp_path / "small", "small")
        await copy_from_pod(pods, "one", "small", tmp_path / "small")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert (await copy_to_pod(pods, "one", large, "large")).bytes == size
        assert digest(container / "large") == digest(large)
        assert (await copy_from_pod(pods, "one", "large", tmp_path / "back")).bytes == size
        assert digest(tmp_path / "back") == digest(large)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024
    (container / "large").unlink()


@both
async def test_a_directory_comes_back_as_it_was(
    kind: str, cluster: ControlPlane, container: Path, tmp_path: Path
) -> None:
    make_tree(tmp_path / "tree")
    async with opened(kind, cluster, container) as pods:
        await copy_to_pod(pods, "one", tmp_path / "tree", f"{kind}-tree")
        await copy_from_pod(pods, "one", f"{kind}-tree", tmp_path / "back")
    assert describe_tree(container / f"{kind}-tree") == describe_tree(tmp_path / "tree")
    assert describe_tree(tmp_path / "back") == describe_tree(tmp_path / "tree")


@both
async def test_what_fails_is_an_error_and_leaves_nothing(
    kind: str, cluster: ControlPlane, container: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(bytes(10 * MEBIBYTE))
    before = describe_tree(container)
    async with opened(kind, cluster, container) as pods:
        with pytest.raises(CopyFailedError, match=r"tar failed.*none: Cannot stat: No such file or directory"):
            await copy_from_pod(pods, "one", "none", tmp_path / "copy")
        with pytest.raises(CopyFailedError, match=r"tar failed.*no.such: Cannot open: No such file or directory"):
            await copy_to_pod(pods, "one", tmp_path / "file", "no/such/file")
        with pytest.raises(NotFoundError, match='pods "none" not found'):
            await copy_to_pod(pods, "none", tmp_path / "file", "file")
        with pytest.raises(BadRequestError, match="container other is not valid for pod one"):
            await copy_from_pod(pods, "one", "file", tmp_path / "copy", container="other")
    assert describe_tree(container) == before
    assert list(describe_tree(tmp_path)) == ["file"]


@both
async def test_kubectl_copies_the_same_files(
    kind: str, cluster: ControlPlane, container: Path, assets: Path, tmp_path: Path
) -> None:
    async def kubectl(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        with trio.fail_after(60):
            return await trio.run_process(
                [str(assets / "kubectl"), *connection, "cp", *arguments],
                cwd=tmp_path,
                capture_stdout=True,
                capture_stderr=True,
                check=False,
            )

    tree = tmp_path / "tree"
    (tree / "a" / "empty").mkdir(parents=True)
    (tree / "a" / "file").write_bytes(os.urandom(300_000))
    (tree / ("n" * 150)).write_text("long")
    (tree / "ünï").write_text("x")
    async with embedded(container) as url:
        connection = ["--server", url] if kind == "embedded" else ["--kubeconfig", str(cluster.kubeconfig)]
        if kind == "embedded":
            assert (await kubectl("tree", f"one:{container}/{kind}-theirs")).returncode == 0
        else:
            # kwok does not tell a command where its input ends, for which the tar of kubectl waits, and ours does not.
            await trio.to_thread.run_sync(shutil.copytree, tree, container / f"{kind}-theirs")
        async with opened(kind, cluster, container) as pods:
            await copy_to_pod(pods, "one", tree, f"{container}/{kind}-ours")
            assert describe_tree(container / f"{kind}-ours") == describe_tree(container / f"{kind}-theirs")
            assert (await kubectl(f"one:{container}/{kind}-ours", "theirs")).returncode == 0
            await copy_from_pod(pods, "one", f"{container}/{kind}-theirs", tmp_path / "ours")
    assert describe_tree(tmp_path / "ours") == describe_tree(tmp_path / "theirs") == describe_tree(tree)

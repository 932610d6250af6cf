"""``serve`` with the certificate and the token that it makes itself, and with a file that keeps its objects."""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import trio
import trio.testing

from tests.support.kubeconfigs import load_kubeconfig
from tests.support.processes import Program, running
from trioformer.client import open_client
from trioformer.errors import ExpiredError, UnauthorizedError
from trioformer.kubeconfig import ClusterConfig
from trioformer.manifests import apply_manifests, load_manifests
from trioformer.models import ObjectMeta
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import ConfigMap, Namespace
from trioformer.testing import APIServer
from trioformer.testing.__main__ import main
from trioformer.testing._identity import make_identity
from trioformer.testing._state_file import StateError, StateFile

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  names: {kind: Gadget, plural: gadgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "web:1"}]}
"""


@asynccontextmanager
async def command(path: Path, *options: str) -> AsyncIterator[Program]:
    """Run the command with a kubeconfig in this directory."""
    arguments = ("serve", "--bind=127.0.0.1:0", f"--write-kubeconfig={path / 'kubeconfig'}", *options)
    with trio.fail_after(30):
        async with running("-m", "trioformer.testing", *arguments) as program:
            await program.wait_for(lambda lines: bool(lines))
            yield program


async def test_by_default_clients_need_the_kubeconfig(tmp_path: Path) -> None:
    async with command(tmp_path) as program:
        url = program.lines[0]
        assert url.startswith("https://127.0.0.1:")
        assert stat.S_IMODE((tmp_path / "kubeconfig").stat().st_mode) == 0o600
        async with open_client(kubeconfig=tmp_path / "kubeconfig") as client:
            assert "default" in [one.name for one in await client.api(Namespace).list()]
        config = load_kubeconfig(tmp_path / "kubeconfig")
        stranger = ClusterConfig(server=url, ca_data=config.ca_data)
        async with open_client(stranger) as client:
            with pytest.raises(UnauthorizedError):
                await client.api(Namespace).list()
        async with httpx.AsyncClient() as http:
            with pytest.raises(httpx.ConnectError):
                await http.get(f"{url}/readyz")
        assert await program.interrupt() == 0
        assert program.errors == []


async def test_garbage_is_collected(tmp_path: Path) -> None:
    async with command(tmp_path), open_client(kubeconfig=tmp_path / "kubeconfig") as client:
        config_maps = client.api(ConfigMap, "default")
        owner = await config_maps.create(ConfigMap(metadata=ObjectMeta(name="owner")))
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid}
        await config_maps.apply({"metadata": {"name": "owned", "ownerReferences": [reference]}}, field_manager="test")
        async with config_maps.watch(resource_version=owner.metadata.resource_version) as events:
            await config_maps.delete("owner")
            async for event in events:
                if (event.type, event.object.name) == ("DELETED", "owned"):
                    break


async def test_the_objects_and_the_kubeconfig_outlive_a_restart(tmp_path: Path) -> None:
    state = f"--state={tmp_path / 'state'}"
    async with command(tmp_path, state) as program:
        before = load_kubeconfig(tmp_path / "kubeconfig")
        async with open_client(before) as client:
            created = await client.api(ConfigMap, "default").create(
                ConfigMap(metadata=ObjectMeta(name="kept"), data={"a": "ü"})
            )
            await apply_manifests(client, load_manifests(text=DEFINITION), field_manager="test")
            listed = await client.api(ConfigMap, "default").list()
        program.process.send_signal(signal.SIGTERM)
        assert await program.wait_until_over() == 0
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o600
    async with command(tmp_path, state, f"--load={tmp_path / 'absent'}") as program:
        after = load_kubeconfig(tmp_path / "kubeconfig")
        assert (after.token, after.ca_data) == (before.token, before.ca_data)
        async with open_client(after) as client:
            assert await client.api(ConfigMap, "default").get("kept") == created
            assert (await client.request("GET", "/apis/example.com/v1/gadgets")).code == 200
            with pytest.raises(ExpiredError):
                async with client.api(ConfigMap, "default").watch(resource_version=listed.resource_version) as events:
                    await anext(events)
        assert await program.interrupt() == 0
        assert program.errors == []


async def test_changes_are_kept_without_an_orderly_end(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with command(tmp_path, f"--state={state}") as program:
        async with open_client(kubeconfig=tmp_path / "kubeconfig") as client:
            await client.api(ConfigMap, "default").create(ConfigMap(metadata=ObjectMeta(name="kept")))
        with trio.fail_after(20):
            while not state.exists() or b"kept" not in state.read_bytes():  # noqa: ASYNC110  # a file of another process
                await trio.sleep(0.1)
        program.process.kill()
    async with command(tmp_path, f"--state={state}"), open_client(kubeconfig=tmp_path / "kubeconfig") as client:
        assert (await client.api(ConfigMap, "default").get("kept")).name == "kept"


async def test_the_server_answers_while_the_file_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, written = tmp_path / "state", threading.Event()
    state, server = StateFile.open(path), APIServer()
    state.restore(server)
    on_disk: list[int] = []
    monkeypatch.setattr(os, "fsync", on_disk.append)

    def replace(new: str, old: Path) -> None:
        assert on_disk
        assert written.wait(10)
        Path(new).rename(old)

    monkeypatch.setattr(os, "replace", replace)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(state._save, server)
        with trio.fail_after(10):
            while not path.with_name("state.new").exists():  # noqa: ASYNC110  # a file of another thread
                await trio.sleep(0.01)
        server.create(ConfigMap(metadata=ObjectMeta(name="late")))
        assert not path.exists(), "the old content is kept until the new is complete"
        written.set()
    assert b"late" not in path.read_bytes()
    os.close(state._lock)


async def test_a_state_belongs_to_one_server(tmp_path: Path) -> None:
    state = f"--state={tmp_path / 'state'}"
    arguments = ("serve", "--bind=127.0.0.1:0", state)
    async with command(tmp_path, state), running("-m", "trioformer.testing", *arguments) as second:
        assert await second.wait_until_over() == 1
    assert second.errors == [f"error: --state: another server uses {tmp_path / 'state'}"]


async def test_changes_are_written_after_a_second_and_at_the_end(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "state"
    state, server = StateFile.open(path), APIServer()
    assert not state.restore(server)
    state.identity = make_identity(["a.test"])
    async with trio.open_nursery() as nursery:
        await nursery.start(state.run, server)
        assert b"a.test" in path.read_bytes(), "the identity outlives a kill before the first change"
        server.create(ConfigMap(metadata=ObjectMeta(name="early")))
        await trio.sleep(0.9)
        assert b"early" not in path.read_bytes()
        await trio.sleep(0.2)
        while b"early" not in path.read_bytes():  # a thread writes it, for which the clock does not wait
            await trio.to_thread.run_sync(time.sleep, 0.01)
        server.create(ConfigMap(metadata=ObjectMeta(name="late")))
        nursery.cancel_scope.cancel()
    link = tmp_path / "link"
    link.symlink_to(path)
    for name in (path, link):
        with pytest.raises(StateError, match="another server uses"):
            StateFile.open(name)
    os.close(state._lock)
    again, other = StateFile.open(path), APIServer()
    assert again.identity == state.identity
    assert again.restore(other)
    assert [one.name for one in other.list(ConfigMap, namespace="default")] == ["early", "late"]
    other.create(ConfigMap(metadata=ObjectMeta(name="third")))
    assert int(other.get(ConfigMap, "third").metadata.resource_version) > server.snapshot().revision
    path.unlink()
    path.mkdir()
    await again._save(other)
    assert "cannot be written" in caplog.text
    os.close(again._lock)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"format":2}',
        '{"format":1,"revision":1,"identity":{},"objects":{}}',
        '{"format":1,"revision":1,"identity":null,"objects":{"configmaps":{"a/b":[1]}}}',
        '{"format":1,"revision":1,"identity":null,"objects":{"customresourcedefinitions.apiextensions.k8s.io":{"b":[1,"x"]}}}',
    ],
)
def test_another_file_is_refused_and_kept(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "state"
    state.write_text(content)
    assert main(["serve", "--bind=127.0.0.1:0", "--insecure-http", f"--state={state}"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: --state: {state} is not a state file")
    assert state.read_text() == content


def test_a_state_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = tmp_path / "absent" / "state"
    assert main(["serve", "--bind=127.0.0.1:0", "--insecure-http", f"--state={state}"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(state) in line


def test_without_trustme_the_error_names_the_ways_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "trustme", None)
    assert main(["serve", "--bind=127.0.0.1:0"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert all(way in line for way in ("trioformer[testing]", "--certificate", "--insecure-http"))


def test_insecure_http_excludes_a_certificate(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--insecure-http", "--certificate=tls.crt", "--key=tls.key"]) == 1
    assert "--insecure-http" in capsys.readouterr().err


async def test_controllers_run_the_pods_of_workloads(tmp_path: Path) -> None:
    async with command(tmp_path, "--controllers"), open_client(kubeconfig=tmp_path / "kubeconfig") as client:
        await apply_manifests(client, load_manifests(text=DEPLOYMENT), field_manager="test")
        async with client.api(Deployment, "default").watch(resource_version="0") as events:
            async for event in events:
                if event.object.status.ready_replicas == 2:
                    break

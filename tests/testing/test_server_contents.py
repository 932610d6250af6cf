"""The embedded API server: objects from files, snapshots."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
import trio
import trio.testing

from tests.support.raw_requests import WIDGET, config_map, watching
from trioformer.cache import ApiListWatch, SharedInformer
from trioformer.errors import ManifestError, NotFoundError
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.testing import APIServer
from trioformer.testing.__main__ import main

OBJECTS = """
apiVersion: v1
kind: List
items:
- apiVersion: example.com/v1
  kind: Widget
  metadata: {name: w, namespace: team, resourceVersion: "4711", uid: old}
  size: 3
- apiVersion: v1
  kind: Pod
  metadata: {name: web-0}
  status: {phase: Running}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: v1
kind: Namespace
metadata: {name: team}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "objects.yaml"
    path.write_text(OBJECTS)
    return path


def cached(informer: SharedInformer[ConfigMap]) -> dict[str, str]:
    return {obj.name: obj.resource_version for obj in informer.lister.list()}


# --- load -----------------------------------------------------------------------------------------------------------


def test_objects_of_a_file_are_created_whatever_their_order(file: Path) -> None:
    """A file that kubectl has written from another cluster has versions and uids of that cluster."""
    server = APIServer()
    server.load(file)
    assert server.get(Pod, "web-0").status.phase == "Running"
    widget = server.get("widgets", "w", namespace="team")
    assert (widget["size"], widget["metadata"]["uid"] == "old") == (3, False)  # type: ignore[index]  # JSON


def test_an_object_that_is_refused_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("---\napiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: missing}\n")
    with pytest.raises(NotFoundError, match=r"Pod a .*a\.yaml:2.*missing"):
        APIServer().load(path)


def test_a_file_that_is_not_valid_is_refused_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\nkind: [")
    server = APIServer()
    with pytest.raises(ManifestError, match=r"a\.yaml"):
        server.load(path)
    assert server.list(Pod) == []


@pytest.mark.parametrize("text", ["kind: [", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: missing}"])
def test_a_file_that_the_command_cannot_load_is_one_line(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    assert main(["serve", "--bind", "127.0.0.1:0", "--load", str(path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert "a.yaml" in line


# --- snapshots ------------------------------------------------------------------------------------------------------


def test_a_restored_server_has_the_objects_versions_and_kinds_of_the_snapshot(file: Path) -> None:
    server = APIServer()
    server.create(config_map("kept"))
    server.create(config_map("deleted"))
    before = server.list(ConfigMap)
    snapshot = server.snapshot()
    server.patch(ConfigMap, "kept", {"data": {"a": "b"}})
    server.delete(ConfigMap, "deleted")
    server.load(file)
    lost = server.statistics().revision
    server.restore(snapshot)
    assert server.list(ConfigMap) == before
    assert server.statistics().revision > lost, "no version means two states"
    assert server.list(Pod) == []
    with pytest.raises(NotFoundError):
        server.list("widgets")


def test_a_snapshot_stays_as_it_was_taken() -> None:
    server = APIServer()
    snapshot = server.snapshot()
    for name in ("a", "b"):
        server.restore(snapshot)
        server.create(config_map(name))
        server.register(WIDGET)
        assert [obj.name for obj in server.list(ConfigMap)] == [name]
    server.restore(snapshot)
    with pytest.raises(NotFoundError):
        server.list("widgets")


def test_no_uid_is_given_twice_after_a_restore() -> None:
    """Neither to what was lost, nor to an object of the server from which the snapshot is."""
    first, second = APIServer(), APIServer()
    snapshot = first.snapshot()
    uids = [first.create(ConfigMap(metadata=ObjectMeta(name="a"))).uid]
    full = first.snapshot()
    first.restore(snapshot)
    uids.append(first.create(ConfigMap(metadata=ObjectMeta(name="a"))).uid)
    second.restore(full)
    uids.append(second.create(ConfigMap(metadata=ObjectMeta(name="b"))).uid)
    assert len(set(uids)) == 3


def test_a_snapshot_shows_no_secret() -> None:
    server = APIServer()
    server.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"password": "aHVudGVyMg=="}}
    )
    assert "aHVudGVyMg==" not in repr(server.snapshot())


async def test_a_restore_resets_watches_and_discards_history(nursery: trio.Nursery) -> None:
    server = APIServer()
    await nursery.start(server.run)
    server.create(config_map("a"))
    snapshot = server.snapshot()
    async with watching(server, "/api/v1/configmaps") as events:
        await events.event()
        server.restore(snapshot)
        with pytest.raises(httpx.RemoteProtocolError):
            await events.event()
    assert server.statistics().compacted_revision == server.statistics().revision


async def test_an_informer_follows_a_restored_server(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """Even if as much is written after the restore as was lost by it."""
    server = APIServer()
    await nursery.start(server.run)
    server.create(config_map("kept"))
    async with server.open_client() as client:
        informer = SharedInformer(ApiListWatch(client.api(ConfigMap)))
        await nursery.start(informer.run)
        snapshot = server.snapshot()
        server.patch(ConfigMap, "kept", {"data": {"a": "b"}})
        for number in range(50):
            server.create(config_map(f"lost-{number}"))
        await trio.testing.wait_all_tasks_blocked()
        assert len(cached(informer)) == 51
        server.restore(snapshot)
        for number in range(60):
            server.create(config_map(f"new-{number}"))
        await trio.sleep(30)
        assert cached(informer) == {obj.name: obj.resource_version for obj in server.list(ConfigMap)}
        assert [obj.data for obj in informer.lister.list() if obj.name == "kept"] == [{}]
        nursery.cancel_scope.cancel()


async def test_the_garbage_collector_follows_a_restored_server(nursery: trio.Nursery) -> None:
    server = APIServer(garbage_collector=True)
    await nursery.start(server.run)
    owner = server.create(ConfigMap(metadata=ObjectMeta(name="owner")))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid}
    server.create(config_map("owned", ownerReferences=[reference]))
    await trio.testing.wait_all_tasks_blocked()
    snapshot = server.snapshot()
    for _ in range(2):
        server.delete(owner)
        await trio.testing.wait_all_tasks_blocked()
        assert server.list(ConfigMap) == []
        server.restore(snapshot)
        await trio.testing.wait_all_tasks_blocked()
        assert [obj.name for obj in server.list(ConfigMap)] == ["owned", "owner"]


async def test_garbage_in_a_snapshot_is_collected_after_a_restore(nursery: trio.Nursery) -> None:
    server = APIServer(garbage_collector=True)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "gone"}
    server.create(config_map("owned", ownerReferences=[reference]))
    snapshot = server.snapshot()
    await nursery.start(server.run)
    await trio.testing.wait_all_tasks_blocked()
    assert server.list(ConfigMap) == []
    server.restore(snapshot)
    await trio.testing.wait_all_tasks_blocked()
    assert server.list(ConfigMap) == []

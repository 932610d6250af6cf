"""A server with the tables of another release."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.raw_requests import TABLE, running
from trioformer.errors import NotFoundError
from trioformer.testing import APIServer
from trioformer.testing.__main__ import main
from trioformer.testing._state_file import StateFile
from trioformer.testing._storage._release import INSTALLED

PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
CLASS = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "a"}, "handler": "a"}
Replace = Callable[[str, str, str], None]


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """Copies of the installed tables."""
    return Path(shutil.copytree(INSTALLED.directory, tmp_path / "tables"))


@pytest.fixture
def replace(tables: Path) -> Replace:
    """A function that replaces a text in one of the copies."""

    def replace(name: str, old: str, new: str) -> None:
        text = (tables / name).read_text()
        assert old in text
        (tables / name).write_text(text.replace(old, new))

    return replace


def pod(name: str = "a", **container: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {"containers": [{"name": name, "image": "b", **container}]}}


def deployment(container: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod(container)["spec"]}
    return {"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}


async def test_objects_follow_the_tables_of_their_server(tables: Path, replace: Replace) -> None:
    replace("defaults.txt", '"terminationMessagePath":"/dev/termination-log"', '"terminationMessagePath":"/other"')
    replace("validation.txt", "core_v1.ContainerPort ", "core_v1.Unknown ")
    replace("kinds.txt", "pods ", "pods upsert ")
    replace("field_types.json", '"containers": "[name]core', '"containers": "[]core')
    results = []
    for server in (APIServer(tables=tables), APIServer()):
        async with running(server) as http:
            upserted = await http.put(f"{PODS}/a", json=pod(ports=[{"containerPort": 70_000}]))
            await http.post(DEPLOYMENTS, json=deployment("a"))
            media_type = {"content-type": "application/strategic-merge-patch+json"}
            patched = await http.patch(f"{DEPLOYMENTS}/a", json=deployment("b"), headers=media_type)
            containers = patched.json()["spec"]["template"]["spec"]["containers"]
            shown = [(one["name"], one["terminationMessagePath"]) for one in containers]
            results.append((upserted.status_code, shown))
    expected = [("b", "/dev/termination-log"), ("a", "/dev/termination-log")]
    assert results == [(201, [("b", "/other")]), (404, expected)]


async def test_kinds_and_their_documents_follow_the_tables_of_their_server(tables: Path, replace: Replace) -> None:
    replace("discovery.txt", "v1.36.3+trioformer", "v1.35.4+trioformer")
    replace("discovery.txt", '"name":"runtimeclasses"', '"name":"unknownclasses"')
    replace("columns.txt", '"name":"Ready"', '"name":"Prepared"')
    replace("bootstrap/services.txt", '"name":"kubernetes"', '"name":"other"')
    server = APIServer(tables=tables)
    async with running(server) as http:
        assert (await http.get("/version")).json()["gitVersion"] == "v1.35.4+trioformer"
        names = [one["name"] for one in (await http.get("/apis/node.k8s.io/v1")).json()["resources"]]
        assert names == ["unknownclasses"]
        assert (await http.get("/apis/node.k8s.io/v1/runtimeclasses")).status_code == 404
        assert (await http.get("/apis/node.k8s.io/v1/unknownclasses")).status_code == 501
        columns = (await http.get(PODS, headers={"accept": TABLE})).json()["columnDefinitions"]
        assert [one["name"] for one in columns][:2] == ["Name", "Prepared"]
    assert [one["metadata"]["name"] for one in server.list("services")] == ["other"]
    with pytest.raises(NotFoundError):
        server.create(CLASS)
    assert APIServer().create(CLASS)["handler"] == "a"


async def test_a_restored_state_follows_the_tables(tables: Path, replace: Replace, tmp_path: Path) -> None:
    replace("discovery.txt", '"name":"runtimeclasses"', '"name":"unknownclasses"')
    state = StateFile.open(tmp_path / "state")
    await state._save(APIServer())
    os.close(state._lock)
    server = APIServer(tables=tables)
    again = StateFile.open(tmp_path / "state")
    assert again.restore(server)
    os.close(again._lock)
    with pytest.raises(NotFoundError):
        server.create(CLASS)
    server.restore(APIServer().snapshot())
    assert server.create(CLASS)["handler"] == "a", "a snapshot has the kinds of its server"


def test_tables_are_read_when_they_are_needed(tables: Path) -> None:
    (tables / "openapi.xz").write_bytes(b"not compressed")
    (tables / "columns.txt").write_bytes(b"\xff")
    assert APIServer(tables=tables).create({"apiVersion": "v1", "kind": "Pod", **pod()})


@pytest.mark.parametrize("name", ["kinds.txt", "bootstrap", ""])
def test_an_incomplete_directory_is_an_error(name: str, tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tables / name).rename(tables.with_name("moved"))
    with pytest.raises(ValueError, match="nox -s tables") as caught:
        APIServer(tables=tables)
    assert (name or "is not a directory") in str(caught.value)
    assert main(["serve", "--bind=127.0.0.1:0", "--insecure-http", f"--tables={tables}"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: --tables: {tables} ")

"""``label`` and ``annotate``, and ``create -f``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import run
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer


@pytest.fixture
def server(api_server: APIServer) -> APIServer:
    for name in ("a", "b"):
        api_server.create(ConfigMap(metadata=ObjectMeta(name=name, labels={"x": "1"}, annotations={"y": "1"})))
    return api_server


async def metadata(server: APIServer, name: str) -> Any:
    return json.loads((await run(server, "get", "cm", name, "-o", "json", "--show-managed-fields")).out)["metadata"]


@pytest.mark.parametrize(
    ("changes", "done", "labels"),
    [
        (["z=2"], "labeled", {"x": "1", "z": "2"}),
        (["x-"], "unlabeled", None),
        (["x-", "z="], "modified", {"z": ""}),
        (["x=1"], "not labeled", {"x": "1"}),
        (["x=2", "--overwrite"], "labeled", {"x": "2"}),
    ],
)
async def test_labels_are_set_and_removed(
    server: APIServer, changes: list[str], done: str, labels: dict[str, str] | None
) -> None:
    dry = await run(server, "label", "cm", "a", *changes, "--dry-run=client", "-o", "json")
    assert json.loads(dry.out)["metadata"].get("labels") == (labels or {})
    assert (await metadata(server, "a"))["labels"] == {"x": "1"}
    result = await run(server, "label", "cm", "a", *changes)
    assert (result.code, result.out, result.err) == (0, f"configmap/a {done}\n", "")
    found = await metadata(server, "a")
    assert found.get("labels") == labels


async def test_annotations_are_set_and_removed(server: APIServer) -> None:
    assert (
        await run(server, "annotate", "cm", "a", "b", "z=<2>")
    ).out == "configmap/a annotated\nconfigmap/b annotated\n"
    assert (await metadata(server, "a"))["annotations"] == {"y": "1", "z": "<2>"}
    assert (await run(server, "annotate", "cm", "--all", "y-", "z-")).out.count("annotated") == 2
    assert "annotations" not in await metadata(server, "b")


async def test_labels_are_listed(server: APIServer) -> None:
    assert (await run(server, "label", "cm", "a", "--list")).out == "x=1\n"
    result = await run(server, "annotate", "cm", "--all", "--list")
    assert result.out == "Listing annotations for ConfigMap./a:\n y=1\nListing annotations for ConfigMap./b:\n y=1\n"


async def test_a_label_that_is_not_there_is_said(server: APIServer) -> None:
    assert (await run(server, "label", "cm", "a", "n-")).out == 'label "n" not found.\nconfigmap/a not labeled\n'


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["label", "cm", "a"], "error: at least one label update is required\n"),
        (
            ["label", "a=b"],
            "error: one or more resources must be specified as <resource> <name> or <resource>/<name>\n",
        ),
        (["label", "cm", "a", "x=2"], "error: 'x' already has a value (1), and --overwrite is false\n"),
        (
            ["annotate", "cm", "a", "y=2"],
            "error: --overwrite is false but found the following declared annotation(s): 'y' already has a value (1)\n",
        ),
        (["label", "cm", "a", "x=!"], 'error: invalid label value: "x=!": a valid label must be at most 63 letters'),
        (["label", "cm", "a=b", "b"], "error: all resources must be specified before label changes: b\n"),
        (["label", "cm", "a", "x=2", "x-"], "error: can not both modify and remove a label in the same command\n"),
        (["label", "cm", "a", "z=1", "--resource-version=1"], "Error from server (Conflict): "),
        (["label", "cm", "--all", "z=1", "--resource-version=1"], "error: --resource-version may only be used with a"),
        (["label", "cm", "nope", "z=1"], 'Error from server (NotFound): configmaps "nope" not found\n'),
        (["label", "cm", "a", "--list", "-o", "yaml"], "error: --list and --output may not be specified together\n"),
    ],
)
async def test_wrong_changes_are_errors(server: APIServer, arguments: list[str], error: str) -> None:
    result = await run(server, *arguments)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(error)


async def test_objects_of_files_are_created_once(
    server: APIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
    (tmp_path / "c.yaml").write_text(f"{one}---\n{one.replace('name: c', 'generateName: gen-')}")
    dry = await run(server, "create", "-f", "c.yaml", "--dry-run=client")
    assert dry.out == "configmap/c created (dry run)\nconfigmap/ created (dry run)\n"
    result = await run(server, "create", "-f", "c.yaml", "--save-config")
    assert result.code == 0
    assert [line.split("-")[0] for line in result.out.splitlines()] == ["configmap/c created", "configmap/gen"]
    assert "last-applied" in str((await metadata(server, "c"))["annotations"])
    result = await run(server, "create", "-f", "c.yaml")
    assert (result.code, result.out.split("-")[0]) == (1, "configmap/gen")
    problem = 'error when creating "c.yaml": configmaps "c" already exists'
    assert result.err == f"Error from server (AlreadyExists): {problem}\n"
    result = await run(server, "create", "deployment", "x")
    assert result.err == 'error: "create deployment" is not supported: only files can be created, with -f\n'

"""``python -m trioformer.crds``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.processes import ROOT
from trioformer.crds.__main__ import main

MODULE = '''
from trioformer.crds import custom_resource
from trioformer.models import KubernetesObject
from trioformer.models.core_v1 import Pod


@custom_resource("example.com/v1")
class {0}One(KubernetesObject):
    """The first: ä."""


@custom_resource("example.com/v1")
class {0}Two(KubernetesObject):
    size: int = 1


class {0}Other(KubernetesObject):
    pass
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with two custom resources, in the current directory."""
    name = f"kinds_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE.format("My"))
    monkeypatch.chdir(tmp_path)
    return name


def test_a_module_stands_for_all_custom_resources_that_it_defines(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([module]) == 0
    documents = list(yaml.safe_load_all(capsys.readouterr().out))
    assert [each["spec"]["names"]["kind"] for each in documents] == ["MyOne", "MyTwo"]
    assert documents[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] == "The first: ä."


def test_one_class_can_be_named_and_is_printed_once(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"{module}:MyTwo", f"{module}:MyTwo"]) == 0
    (document,) = yaml.safe_load_all(capsys.readouterr().out)
    assert document["metadata"]["name"] == "mytwos.example.com"


def test_each_definition_is_a_file_of_a_directory_that_is_made(module: str, tmp_path: Path) -> None:
    assert main([module, "-o", str(tmp_path / "a" / "b")]) == 0
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == [
        "myones.example.com.yaml",
        "mytwos.example.com.yaml",
    ]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("{0}:MyOther", "error: {0} has no class MyOther with @custom_resource\n"),
        ("{0}:Nope", "error: {0} has no class Nope with @custom_resource\n"),
        ("no_such_module", "error: no_such_module cannot be imported: No module named 'no_such_module'\n"),
        ("yaml", "error: yaml defines no class with @custom_resource\n"),
    ],
)
def test_what_is_not_found_is_one_line(
    module: str, name: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name.format(module)]) == 1
    assert capsys.readouterr() == ("", problem.format(module))


def test_a_class_without_a_schema_is_one_line_with_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wrong_kinds.py").write_text(MODULE.format("Wrong").replace("size: int = 1", "size: str | bool"))
    monkeypatch.chdir(tmp_path)
    assert main(["wrong_kinds"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert "wrong_kinds.py:14: WrongTwo.size: str | bool has no schema; " in error


def test_the_command_runs_as_a_program(module: str) -> None:
    command = [sys.executable, "-m", "trioformer.crds", module]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)})
    assert done.stdout.count("kind: CustomResourceDefinition") == 2

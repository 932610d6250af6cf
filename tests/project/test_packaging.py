"""What pyproject.toml says of the package agrees with what else says it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
POLICIES = (ROOT / "docs" / "policies.rst").read_text()
CONDA_NAMES = {"prometheus-client": "prometheus_client"}
"""Packages that have another name on conda-forge, but for capitals."""


def conda_requirement(requirement: str) -> str:
    found = re.fullmatch(r"([\w-]+)(.*)", requirement)
    assert found is not None
    name, bounds = found.groups()
    return f"{CONDA_NAMES.get(name, name.lower())} {bounds}"


def test_the_extra_all_has_every_other_extra() -> None:
    assert EXTRAS["all"] == [f"trioformer[{','.join(sorted(EXTRAS.keys() - {'all'}))}]"]


def test_the_recipe_for_conda_has_the_requirements_of_the_project() -> None:
    recipe = yaml.safe_load((ROOT / "docs" / "conda-forge" / "recipe.yaml").read_text())
    requirements = recipe["requirements"]
    assert f">={recipe['context']['python_min']}" == PROJECT["requires-python"]
    assert requirements["run"][1:] == [conda_requirement(each) for each in PROJECT["dependencies"]]
    optional = {conda_requirement(each) for extra in EXTRAS.keys() - {"all"} for each in EXTRAS[extra]}
    assert requirements["run_constraints"] == sorted(optional)
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["license_file"] == PROJECT["license-files"]


def test_the_supported_versions_are_those_that_are_tested() -> None:
    python = re.findall(r"^   \* - (3\.\d+)$", POLICIES, re.MULTILINE)
    noxfile = re.search(r"^SUPPORTED = \((.*)\)$", (ROOT / "noxfile.py").read_text(), re.MULTILINE)
    assert noxfile is not None
    assert python == re.findall(r"[\d.]+", noxfile[1])
    tested = re.search(
        r"^require k8s.io/kubernetes v((\d+\.\d+)\.\d+)$",
        (ROOT / "tests" / "e2e" / "control_plane" / "go.mod").read_text(),
        re.MULTILINE,
    )
    assert tested is not None
    assert f"   * - {tested[2]}\n" in POLICIES
    assert f"({tested[1]})" in POLICIES


def test_a_tag_uploads_what_has_been_built_with_attestations() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert text.count("OWNER/") == 1
    workflow = yaml.safe_load(text)
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML 1.1 reads "on" as a boolean
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    assert any("nox -s package" in step.get("run", "") for step in build["steps"])
    assert publish["permissions"] == {"id-token": "write"}
    upload = publish["steps"][-1]
    assert upload["uses"].startswith("pypa/gh-action-pypi-publish@")
    assert upload["with"] == {"attestations": True}


def test_continuous_integration_builds_the_package() -> None:
    assert re.search(r"^for session in .*\bpackage\b", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)

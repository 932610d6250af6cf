"""``docs/install.rst`` says what ``pyproject.toml`` and the end-to-end tests say."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "install.rst").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def names_of(requirements: list[str]) -> list[str]:
    return [re.split(r"[<>=\[]", requirement)[0] for requirement in requirements]


def test_the_install_page_has_each_extra_and_what_it_installs() -> None:
    rows = dict(re.findall(r"^``(\w+)`` +(\S.*)$", PAGE, re.MULTILINE))
    for extra, requirements in PROJECT["optional-dependencies"].items():
        assert extra in rows
        for name in names_of(requirements):
            assert name == "trioformer" or name in rows[extra], (extra, name)


def test_the_install_page_has_each_python_and_each_dependency() -> None:
    prefix = "Programming Language :: Python :: 3."
    for version in (each.rpartition(" ")[2] for each in PROJECT["classifiers"] if each.startswith(prefix)):
        assert version in PAGE
    assert [name for name in names_of(PROJECT["dependencies"]) if name not in PAGE] == []
    (trio,) = (each for each in PROJECT["dependencies"] if each.startswith("trio>="))
    assert f"trio {trio.removeprefix('trio>=')} or newer" in PAGE


def test_the_install_page_names_the_kubernetes_that_is_tested() -> None:
    go_mod = (ROOT / "tests" / "e2e" / "control_plane" / "go.mod").read_text()
    (version,) = re.findall(r"^require k8s\.io/kubernetes v(\S+)$", go_mod, re.MULTILINE)
    assert f"kube-controller-manager {version}," in PAGE

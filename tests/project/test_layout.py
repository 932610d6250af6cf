"""Tests are where one looks for them: ``tests/<package>/test_<module>.py`` tests ``trioformer/<package>/<module>``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.processes import ROOT

TESTS = ROOT / "tests"
BESIDE_THE_PACKAGES = {"docs", "e2e", "examples", "fuzz", "parity", "project", "support", "typing"}
"""Folders of tests that are not those of a package: docs/design/testing.rst says what is in them."""


def package_of(folder: Path) -> Path | None:
    """Find the package that a folder of tests belongs to; private packages have the name without underscore."""
    package = ROOT / "trioformer"
    for part in folder.relative_to(TESTS).parts:
        found = [package / name for name in (part, f"_{part}") if (package / name / "__init__.py").exists()]
        if not found:
            return None
        package = found[0]
    return package


def subjects_in(package: Path) -> set[str]:
    """Names of the modules and packages in a package, without underscore, and the package's own name."""
    modules = {path.stem for path in package.glob("*.py")} | {
        path.parent.name for path in package.glob("*/__init__.py")
    }
    return {name.lstrip("_") for name in modules | {package.name}}


FILES = [
    path for path in sorted(TESTS.rglob("test_*.py")) if path.relative_to(TESTS).parts[0] not in BESIDE_THE_PACKAGES
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_a_test_file_is_named_after_a_module_of_its_package(path: Path) -> None:
    package = package_of(path.parent)
    assert package is not None, f"trioformer has no package for the folder {path.parent.relative_to(TESTS)}"
    name = path.stem.removeprefix("test_")
    # What follows the module's name says which aspect of it the file tests: test_reflector_bad_input.py
    assert any(name == subject or name.startswith(f"{subject}_") for subject in subjects_in(package))


def test_no_test_file_lies_beside_the_folders_but_those_of_single_modules() -> None:
    modules = {path.stem.lstrip("_") for path in (ROOT / "trioformer").glob("*.py")}
    assert {path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py")} <= modules


def test_names_of_tests_have_at_most_80_characters() -> None:
    paths = [*TESTS.rglob("test_*.py"), *(ROOT / "examples").glob("test_*.py")]
    names = {name for path in paths for name in re.findall(r"def (test_\w+)", path.read_text())}
    assert [name for name in sorted(names) if len(name) > 80] == []

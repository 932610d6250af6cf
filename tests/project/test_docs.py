"""Compares claims of the documentation with the code."""

from __future__ import annotations

import importlib
import pkgutil
import re
import tomllib
import types
from pathlib import Path

import pytest

import trioformer
import trioformer.models
from docs import diagrams

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = [
    "trioformer",
    *(f"trioformer.{r.name}" for r in pkgutil.iter_modules(trioformer.__path__) if r.name[0] != "_"),
]
FRAGMENT = re.compile(r"[a-z0-9][a-z0-9-]*\.(feature|bugfix|breaking|doc|misc)\.rst")


def fenced(language: str) -> list[str]:
    """Return the README's code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_the_readme_gives_two_commands_of_one_line_each() -> None:
    commands = fenced("sh")
    assert len(commands) == 2
    assert [command.count("\n") for command in commands] == [1, 1]
    pod_logger, tests = commands
    assert "examples/pod_logger.py" in pod_logger
    assert "nox -s tests" in tests


def test_continuous_integration_runs_the_readmes_test_command() -> None:
    assert fenced("sh")[1].rstrip("\n") in (ROOT / ".ci" / "run").read_text().splitlines()


def test_continuous_integration_runs_the_tests_with_the_oldest_dependencies() -> None:
    assert "nox -s lowest" in (ROOT / ".ci" / "run").read_text()


def test_libraries_that_speak_http_have_an_upper_bound() -> None:
    bounded = [r for r in PYPROJECT["project"]["dependencies"] if re.fullmatch(r"[\w-]+>=[\d.]+,<[\d.]+", r)]
    assert {r.partition(">")[0] for r in bounded} >= {"h11", "httpcore", "httpx"}


def test_the_readmes_program_is_a_tested_example() -> None:
    (program,) = fenced("python")
    assert (ROOT / "examples" / "follow_pods.py").read_text().endswith(program)


def test_the_targets_of_the_readmes_local_links_exist() -> None:
    targets = [target for target in re.findall(r"\]\(([^)#]+)", README) if "://" not in target]
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def pages_of_the_reference() -> str:
    return "\n".join(page.read_text() for page in (ROOT / "docs" / "reference").glob("*.rst"))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_package_has_its_page_in_the_reference(package: str) -> None:
    assert f".. automodule:: {package}\n" in pages_of_the_reference()


def test_every_generated_module_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "models.rst").read_text()
    names = [
        module.name for module in pkgutil.iter_modules(trioformer.models.__path__) if not module.name.startswith("_")
    ]
    assert [name for name in names if f"``{name}``" not in page] == []


@pytest.mark.parametrize("package", PACKAGES[1:])
def test_every_alias_and_constant_has_its_entry_in_the_reference(package: str) -> None:
    # Sphinx finds classes and functions by itself.
    entries = re.findall(rf"data:: {re.escape(package)}\.(\w+)$", pages_of_the_reference(), re.MULTILINE)
    module = importlib.import_module(package)
    names = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
    values = {name: getattr(module, name) for name in names if name != "annotations"}
    described = type | types.FunctionType | types.ModuleType
    assert sorted(entries) == sorted(name for name, value in values.items() if not isinstance(value, described))


def test_every_dependency_has_its_reason() -> None:
    reasons = (ROOT / "docs" / "design" / "dependencies.rst").read_text()
    project = PYPROJECT["project"]
    requirements = [
        *project["dependencies"],
        *(r for extra in project["optional-dependencies"].values() for r in extra),
    ]
    requirements += [r for group in PYPROJECT["dependency-groups"].values() for r in group if isinstance(r, str)]
    names = {re.split(r"[<>=!~\[; ]", requirement)[0] for requirement in requirements} - {project["name"]}
    assert {name for name in names if f"``{name}``" not in reasons} == set()


def test_news_fragments_have_the_names_that_towncrier_reads() -> None:
    kept = {"README.rst", ".gitignore"}
    names = {path.name for path in (ROOT / "docs" / "newsfragments").iterdir()} - kept
    assert {name for name in names if not FRAGMENT.fullmatch(name)} == set()


def test_every_kind_of_fragment_is_known_to_towncrier() -> None:
    kinds = {kind["directory"] for kind in PYPROJECT["tool"]["towncrier"]["type"]}
    assert kinds == {"feature", "bugfix", "breaking", "doc", "misc"}


def test_the_supported_versions_agree_everywhere() -> None:
    noxfile = (ROOT / "noxfile.py").read_text()
    found = re.search(r"^SUPPORTED = \((.*)\)$", noxfile, re.MULTILINE)
    assert found is not None
    tested = re.findall(r"[\d.]+", found[1])
    prefix = "Programming Language :: Python :: 3."
    declared = [c.rpartition(" ")[2] for c in PYPROJECT["project"]["classifiers"] if c.startswith(prefix)]
    assert tested == declared
    assert PYPROJECT["project"]["requires-python"] == f">={tested[0]}"


def test_the_pytest_plugin_that_pyproject_names_exists() -> None:
    for module in PYPROJECT["project"]["entry-points"]["pytest11"].values():
        importlib.import_module(module)


def test_drawings_are_what_their_program_draws() -> None:
    assert diagrams.outdated() == []


@pytest.mark.parametrize(("page", "below"), [("deviations", "tests"), ("architecture", "trioformer")])
def test_files_that_the_design_pages_name_exist(page: str, below: str) -> None:
    text = (ROOT / "docs" / "design" / f"{page}.rst").read_text()
    folder, missing, seen = "", [], 0
    for name in re.findall(r"``([\w/]+\.py)``", text):
        # "``a/_b.py``, ``_c.py``": a name without folder is in that of the name before it.
        folder = name.rpartition("/")[0] if "/" in name else folder
        path = ROOT / below / folder / name.rpartition("/")[2]
        missing += [] if path.exists() else [name]
        seen += 1
    assert seen > 20
    assert missing == []

"""Compares claims of the documentation with the code."""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import re
import tomllib
import types
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import trioformer
import trioformer.models
from docs.diagrams import DRAWINGS
from docs.diagrams._shapes import PHONE
from trioformer.leaderelection import LeaderElectionOptions

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
    assert {r.partition(">")[0] for r in bounded} >= {"httptools", "httpx"}


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


def test_the_sidebar_lists_every_how_to_page_in_a_group() -> None:
    trees = (ROOT / "docs" / "index.rst").read_text().split(".. toctree::")[1:]
    groups = [re.findall(r"^   howto/([\w-]+)$", tree, re.MULTILINE) for tree in trees if ":caption: How to: " in tree]
    pages = {path.stem for path in (ROOT / "docs" / "howto").glob("*.rst")} - {"index"}
    assert sorted(itertools.chain(*groups)) == sorted(pages)
    assert all(len(group) <= 9 for group in groups)


def test_code_blocks_have_copy_buttons() -> None:
    assert re.search(
        r"^extensions = \[[^]]*\"sphinx_copybutton\"", (ROOT / "docs" / "conf.py").read_text(), re.MULTILINE
    )


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


SVG = "{http://www.w3.org/2000/svg}"
EVERY_DRAWING = [(name, style) for name, styles in DRAWINGS.items() for style in styles]


@pytest.mark.parametrize(("name", "style"), EVERY_DRAWING)
def test_the_boxes_of_a_drawing_are_inside_and_do_not_overlap(name: str, style: str) -> None:
    root = ET.fromstring(DRAWINGS[name][style]())
    width, height = (float(root.attrib[side]) for side in ("width", "height"))
    if style not in ("desk-only", "scrolls"):
        assert width <= PHONE
    boxes = []
    for rect in root.iter(f"{SVG}rect"):
        if rect.attrib["class"] != "group":
            x, y, wide, high = (float(rect.attrib[each]) for each in ("x", "y", "width", "height"))
            boxes.append((x, y, x + wide, y + high))
    assert boxes
    assert [box for box in boxes if box[0] < 0 or box[1] < 0 or box[2] > width or box[3] > height] == []
    overlapping = [
        (one, other)
        for one, other in itertools.combinations(boxes, 2)
        if min(one[2], other[2]) > max(one[0], other[0]) and min(one[3], other[3]) > max(one[1], other[1])
    ]
    assert overlapping == []


@pytest.mark.parametrize(("name", "style"), EVERY_DRAWING)
def test_an_arrow_of_a_drawing_has_the_head_of_that_drawing(name: str, style: str) -> None:
    # Two drawings of one page may not share it: in one that is not shown, the head is not drawn either.
    svg = DRAWINGS[name][style]()
    (head,) = re.findall(r'<marker id="([^"]+)"', svg)
    assert set(re.findall(r"url\(#([^)]+)\)", svg)) == {head}
    heads = [re.findall(r'<marker id="([^"]+)"', DRAWINGS[one][other]())[0] for one, other in EVERY_DRAWING]
    assert heads.count(head) == 1


@pytest.mark.parametrize(("name", "style"), EVERY_DRAWING)
def test_the_pages_that_a_drawing_links_to_exist(name: str, style: str) -> None:
    pages = re.findall(r'href="page:([^"]+)"', DRAWINGS[name][style]())
    assert [page for page in pages if not (ROOT / "docs" / f"{page}.rst").exists()] == []


def test_every_drawing_is_on_a_page_and_every_page_has_one_that_exists() -> None:
    pages = (ROOT / "docs").rglob("*.rst")
    used = {name for page in pages for name in re.findall(r"^\.\. diagram:: (.+)$", page.read_text(), re.MULTILINE)}
    assert used == set(DRAWINGS)


def test_the_drawing_of_an_election_has_the_times_of_the_options() -> None:
    svg = DRAWINGS["election"][""]()
    options = LeaderElectionOptions()
    for seconds in (options.lease_duration, options.renew_deadline):
        assert f">{seconds:g} s<" in svg
    assert f">every {options.retry_period:g} s<" in svg


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

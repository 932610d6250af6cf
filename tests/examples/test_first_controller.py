"""``examples/first_controller/``, the steps of the tutorial, and what its pages say about them.

The tests of steps 6 and 9 are examples themselves and run with the others; ``tests/e2e/test_first_controller.py`` runs
step 8 in a cluster.
"""

from __future__ import annotations

import difflib
import importlib
import itertools
import re
import sys
import textwrap
import types
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs
import httpx
import pytest
import trio
import trio.testing
import yaml
from step_8_stop_cleanly import App, AppSpec, serve

from tests.support.processes import ROOT, result_here
from trioformer import Client, ObjectMeta, open_client
from trioformer.crds import install_crds
from trioformer.manager import HTTPOptions
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, simulation
from trioformer.testing._simulation_options import options
from trioformer.testing.simulation import StoryFailed, simulate

STEPS = ROOT / "examples" / "first_controller"
PAGES = ROOT / "docs" / "tutorial"
PAGE_OF = {
    "see-pods": "step_1_see_pods.py",
    "index-pods": "step_2_index_pods.py",
    "react": "step_3_react.py",
    "reconcile": "step_4_reconcile.py",
    "write-status": "step_5_write_status.py",
    "test": "step_6_test.py",
    "run-in-a-cluster": "step_7_run_in_a_cluster.py",
    "stop-cleanly": "step_8_stop_cleanly.py",
    "simulate": "step_9_simulate_test.py",
}
PROGRAMS = {page: file for page, file in PAGE_OF.items() if not file.endswith("_test.py")}
FIRST_PAGE = "your-own-operator"
"""The page about a project that ``trioformer init`` writes; ``tests/cli/commands/test_init.py`` checks it."""
SERVES_HTTP = ("run-in-a-cluster", "stop-cleanly")


def page(name: str) -> str:
    return (PAGES / f"{name}.rst").read_text()


# --- the pages --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGE_OF)
def test_the_page_of_a_step_shows_its_whole_file(name: str) -> None:
    found = re.findall(rf"literalinclude:: \S+/{PAGE_OF[name]}\n((?: +:\S.*\n)*)", page(name))
    assert len(found) == 1
    assert re.findall(r":([\w-]+):", found[0]) in ([], ["emphasize-lines"])


def test_every_file_is_on_a_page_and_every_page_in_the_table_and_the_toctree() -> None:
    index = page("index")
    assert {path.name for path in STEPS.glob("*.py")} == set(PAGE_OF.values())
    pages = re.findall(r"^   ([\w-]+)$", index.partition("toctree")[2], re.MULTILINE)
    assert pages[: len(PAGE_OF) + 1] == [FIRST_PAGE, *PAGE_OF]
    assert re.findall(r"^\d\. :doc:`[^<`]+<([\w-]+)>` \(``(\w+\.py)``\)", index, re.MULTILINE) == list(PAGE_OF.items())
    for here, following in itertools.pairwise(PAGE_OF):
        assert f"Next: :doc:`{following}`." in page(here)
    assert {path.stem for path in PAGES.glob("*.rst")} == {"index", FIRST_PAGE, *PAGE_OF}


def changed_lines(old: str, new: str) -> str:
    """Return the lines of a file that are not in the one before, as ``emphasize-lines`` takes them."""
    matcher = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    ranges = [(first + 1, last) for tag, *_, first, last in matcher.get_opcodes() if tag in ("insert", "replace")]
    return ",".join(f"{first}-{last}" if first != last else str(first) for first, last in ranges)


@pytest.mark.parametrize(("before", "name"), [*itertools.pairwise(PROGRAMS)])
def test_the_page_of_a_step_marks_what_is_new(before: str, name: str) -> None:
    (marked,) = re.findall(r":emphasize-lines: (\S+)", page(name))
    assert marked == changed_lines((STEPS / PROGRAMS[before]).read_text(), (STEPS / PROGRAMS[name]).read_text())


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_step_fits_into_the_width_of_a_page_and_has_at_most_140_lines(name: str) -> None:
    lines = (STEPS / PROGRAMS[name]).read_text().splitlines()
    assert len(lines) <= 140
    assert max(map(len, lines)) <= 88


def test_the_pages_commands_name_files_that_exist() -> None:
    named = {path for name in PAGE_OF for path in re.findall(r"examples/first_controller/[\w.]+", page(name))}
    assert [path for path in named if not (ROOT / path).exists()] == []
    assert len(named) > len(PAGE_OF)


# --- the programs -----------------------------------------------------------------------------------------------------


def shown(name: str) -> list[str]:
    """Return the lines that a page says its program prints."""
    block = re.search(
        rf"^   \$ python \S+/{PROGRAMS[name]} --embedded(?: \\\n.*)?\n((?:   .*\n)+)", page(name), re.MULTILINE
    )
    assert block is not None
    return [line[3:] for line in block[1].splitlines()]


def by_app(lines: Iterable[str]) -> dict[str, list[str]]:
    """Group lines by the App that they are about: two workers may print in any order."""
    groups: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        found = re.search(r"default/\w+", line)
        groups[found[0] if found else ""].append(re.sub(r"(?<=127\.0\.0\.1:)\d+", "8080", line))
    return groups


def begins_with(lines: Sequence[str], beginning: Sequence[str]) -> bool:
    return list(lines[: len(beginning)]) == list(beginning)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_step_prints_what_its_page_shows_and_ends_on_ctrl_c(name: str) -> None:
    more = ["--http", "127.0.0.1:0"] if name in SERVES_HTTP else []
    code, lines, errors = result_here(
        str(STEPS / PROGRAMS[name]), "--embedded", *more, is_virtual=True, interrupt_after=2.7
    )
    expected = shown(name)
    if name == "stop-cleanly":
        assert expected.pop() == f"exit code {code}"
    if name in SERVES_HTTP:
        assert lines == []
        lines = errors
    else:
        assert errors == []
    found, wanted = by_app(lines), by_app(expected)
    for app, some in wanted.items():
        assert begins_with(found[app], some), (app, found[app], some)
    ends_by_itself = name in ("see-pods", "index-pods")
    assert code == (0 if ends_by_itself or name == "stop-cleanly" else 130)
    if ends_by_itself:
        assert lines == expected


@pytest.mark.parametrize("name", SERVES_HTTP)
def test_an_address_that_is_not_host_and_port_is_wrong_usage(name: str) -> None:
    code, lines, errors = result_here(str(STEPS / PROGRAMS[name]), "--embedded", "--http", "nonsense")
    assert (code, lines) == (2, [])
    assert "argument --http: invalid HTTPOptions value: 'nonsense'" in errors[-1]


def test_a_step_without_a_cluster_reports_what_its_page_shows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", "nowhere")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    code, lines, errors = result_here(str(STEPS / PROGRAMS["see-pods"]))
    assert (code, lines) == (1, [])
    (block,) = re.findall(r"^   \$ KUBECONFIG=nowhere .*\n((?:   .*\n)+)", page("see-pods"), re.MULTILINE)
    assert errors[-1:] == [line[3:] for line in block.splitlines()][-1:]


# --- what it may do in a cluster --------------------------------------------------------------------------------------


def manifest(kind: str) -> dict[str, object]:
    (found,) = (each for each in yaml.safe_load_all((STEPS / "deploy.yaml").read_text()) if each["kind"] == kind)
    return found  # type: ignore[no-any-return]  # of PyYAML


async def test_the_role_allows_what_the_controller_does_and_no_more(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, k8s_client: Client, nursery: trio.Nursery
) -> None:
    await install_crds(k8s_client, App)
    for name in ("web", "api"):
        api_server.create(App(metadata=ObjectMeta(name=name, namespace="default"), spec=AppSpec(min_ready=1)))
    api_server.requests.clear()
    stop = trio.Event()
    nursery.start_soon(serve, k8s_client, HTTPOptions("127.0.0.1:0"), stop)
    await trio.sleep(1)
    api_server.create(Pod(metadata=ObjectMeta(name="web-0", namespace="default", labels={"app": "web"})))
    await trio.sleep(3600)
    stop.set()
    used = {
        (record.resource + (f"/{record.subresource}" if record.subresource else ""), record.verb)
        for record in api_server.requests
        if record.resource
    }
    rules = manifest("ClusterRole")["rules"]
    assert isinstance(rules, list)
    allowed = {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}
    assert used == allowed


# --- its end ----------------------------------------------------------------------------------------------------------


@attrs.define(eq=False)
class SlowWrites(httpx.AsyncBaseTransport):
    """Takes its time for each write."""

    inner: httpx.AsyncBaseTransport
    seconds: float

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "PATCH":
            await trio.sleep(self.seconds)
        return await self.inner.handle_async_request(request)


@pytest.mark.parametrize(("seconds", "is_written", "ends_after"), [(5, True, 4), (60, False, 20)])
async def test_a_reconcile_that_runs_is_finished_within_the_grace(
    seconds: float, is_written: bool, ends_after: float, autojump_clock: trio.testing.MockClock, api_server: APIServer
) -> None:
    api_server.register(App)
    api_server.create(App(metadata=ObjectMeta(name="web", namespace="default")))
    stop = trio.Event()
    slow = SlowWrites(api_server.http_transport(), seconds)
    async with open_client(api_server.config, http_transport=slow) as client, trio.open_nursery() as nursery:
        nursery.start_soon(serve, client, HTTPOptions("127.0.0.1:0"), stop)
        await trio.sleep(1)
        stopped = trio.current_time()
        stop.set()
    assert trio.current_time() - stopped == pytest.approx(ends_after, abs=0.1)
    assert bool(api_server.get(App, "web").status.conditions) == is_written


def test_the_pod_outlives_the_grace_of_the_controller() -> None:
    (grace,) = re.findall(r"shutdown_grace=(\d+)", (STEPS / PROGRAMS["stop-cleanly"]).read_text())
    text = (STEPS / "deploy.yaml").read_text()
    (period,) = re.findall(r"terminationGracePeriodSeconds: (\d+)", text)
    assert int(period) >= int(grace) + 10


# --- the bug of the page "Simulate it" --------------------------------------------------------------------------------


def changed(number: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """Return step 9 with a block of the page in step 8: the bug is the first block, and the mend is the second."""
    program = (STEPS / PROGRAMS["stop-cleanly"]).read_text()
    blocks = re.findall(r"a part of step 8\n\.\. code-block:: python\n\n((?:   .*\n)+)", page("simulate"))
    last = re.compile(r" +apps, new = self\.client.*\n +await apps\.update_status\(.*\n")
    assert len(last.findall(program)) == 1
    program = last.sub(textwrap.indent(textwrap.dedent(blocks[number]), " " * 8), program)
    program = program.replace("from trioformer import Client,", "from trioformer import Client, ConflictError,")
    for name, text in ((PROGRAMS["stop-cleanly"], program), (PAGE_OF["simulate"], None)):
        (folder / name).write_text(text or (STEPS / name).read_text())
        monkeypatch.setitem(sys.modules, Path(name).stem, types.ModuleType(name))  # restored after the test
        del sys.modules[Path(name).stem]
    monkeypatch.setattr(options, "directory", None)  # saves no stories
    monkeypatch.syspath_prepend(folder)  # also for the process that repeats the story
    return importlib.import_module(Path(PAGE_OF["simulate"]).stem)


def report_of_the_page() -> str:
    (block,) = re.findall(r"code-block:: text\n\n((?:(?:   .*)?\n)+)", page("simulate"))
    return textwrap.dedent(block).strip()


def without_number(report: str) -> str:
    return re.sub(r" \(found .*\)", "", report)


def test_the_simulation_finds_the_bug_of_the_page_in_the_first_stories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = changed(0, tmp_path, monkeypatch)
    with pytest.raises(StoryFailed, match="another end: App default/web: status"):
        simulate(module.operator, module.Apps, stories=50).check()


def test_the_story_of_the_page_fails_as_the_page_shows_and_passes_after_the_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = report_of_the_page()
    code = report.partition("story = ")[2].partition("\n    simulate(")[0]
    story = eval(code, dict(vars(simulation)))
    module = changed(0, tmp_path, monkeypatch)
    failure = simulate(module.operator, module.Apps, story=story).failure
    assert failure is not None
    assert without_number(failure.describe("operator", "Apps")) == without_number(report)
    module = changed(1, tmp_path, monkeypatch)
    simulate(module.operator, module.Apps, story=story).check()

"""The pytest plugin, in a separate pytest process and in this one."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest

import trioformer.testing
from tests.support.processes import result_of
from trioformer.client import Client
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer

if not entry_points(group="pytest11", name="trioformer"):
    pytest_plugins = ["trioformer.testing._plugin"]

TEST = """
    from __future__ import annotations
    import pytest, trio
    from trioformer.models import ObjectMeta
    from trioformer.models.core_v1 import Pod

    {marker}
    async def test_watching(autojump_clock, api_server, k8s_client):
        made = api_server.create(Pod(metadata=ObjectMeta(name="a")))
        assert [pod.name for pod in await k8s_client.api(Pod).list()] == ["a"]
        async with k8s_client.api(Pod).watch(resource_version=made.resource_version, timeout_seconds=600) as events:
            api_server.delete(made)
            assert [event.type async for event in events] == ["DELETED"]
        assert trio.current_time() == 600
"""


async def run_pytest(directory: Path, test: str, *options: str) -> tuple[int, list[str]]:
    lines = [line.removeprefix("    ") for line in test.splitlines()]
    file = directory / "test_it.py"
    file.write_text("\n".join(lines))
    is_installed = bool(entry_points(group="pytest11", name="trioformer"))
    arguments = [
        *([] if is_installed else ["-p", "trioformer.testing._plugin"]),
        "-p",
        "no:cacheprovider",
        "-W",
        "error",
        "-q",
        *options,
    ]
    code, output, errors = await result_of(
        "-m", "pytest", "--rootdir", str(directory), "-c", "/dev/null", *arguments, str(file)
    )
    return code, output + errors


async def test_the_server_runs_during_the_test(api_server: APIServer, k8s_client: Client) -> None:
    assert api_server.statistics().is_running
    api_server.create(Pod(metadata=ObjectMeta(name="a")))
    assert [pod.name for pod in await k8s_client.api(Pod).list()] == ["a"]


async def test_the_old_name_is_the_same_client(k8s_client: Client, client: Client) -> None:
    assert client is k8s_client


async def test_the_fixtures_provide_a_running_server_and_a_client(tmp_path: Path) -> None:
    code, output = await run_pytest(tmp_path, TEST.format(marker=""), "-o", "trio_mode=true")
    assert code == 0, output


async def test_the_fixtures_work_for_marked_tests_too(tmp_path: Path) -> None:
    code, output = await run_pytest(tmp_path, TEST.format(marker="@pytest.mark.trio"))
    assert code == 0, output


TESTS_THAT_CANNOT_RUN = """
    async def test_async(k8s_client): ...
    def test_sync(api_server): ...
"""


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (
            ["-p", "no:trio"],
            "need pytest-trio; install it with `pip install 'trioformer[testing]'`",
        ),
        ([], "set trio_mode = true in pytest's configuration, or mark this test with @pytest.mark.trio"),
    ],
    ids=["without pytest-trio", "without trio_mode"],
)
async def test_a_test_that_cannot_run_on_trio_says_so_in_one_line(
    tmp_path: Path, options: list[str], hint: str
) -> None:
    code, output = await run_pytest(tmp_path, TESTS_THAT_CANNOT_RUN, *options)
    assert code == 1
    assert sum(line.startswith("the fixtures of trioformer") and line.endswith(hint) for line in output) == 2, output
    assert output[-1].startswith("2 errors")


CLOCKS_THAT_DO_NOT_TICK = """
    import pytest
    @pytest.fixture
    def clock(autojump_clock): return autojump_clock
    @pytest.fixture
    def other(autojump_clock): return 1
    async def test_by_another_fixture(other, api_server): ...
    @pytest.mark.usefixtures("mock_clock")
    async def test_by_a_mark(k8s_client): ...
    async def test_as_it_must_be(other, autojump_clock, k8s_client): ...
    async def test_as_it_may_be(clock, k8s_client): ...
"""


async def test_a_clock_that_is_no_argument_of_the_test_is_reported(tmp_path: Path) -> None:
    code, output = await run_pytest(tmp_path, CLOCKS_THAT_DO_NOT_TICK, "-o", "trio_mode=true")
    assert code == 1
    for clock in ("autojump_clock", "mock_clock"):
        hint = f"{clock} has no effect: pytest-trio uses a clock that is an argument of the test function itself"
        assert any(hint in line for line in output), output
    assert output[-1].startswith("2 failed, 2 passed")


async def test_the_plugin_imports_no_module_before_a_fixture_is_used() -> None:
    listing = "[name for name in sys.modules if name.startswith('trioformer.testing')]"
    program = f"import sys, trioformer.testing._plugin; print({listing})"
    code, output, errors = await result_of("-c", program)
    assert (code, errors) == (0, [])
    assert output == ["['trioformer.testing', 'trioformer.testing._plugin']"]


def test_the_package_provides_exactly_the_names_that_it_lists() -> None:
    classes = set(trioformer.testing.__all__) - {"ConnectionHandler", "ProcessHandler"}  # aliases
    assert {name: getattr(trioformer.testing, name).__name__ for name in classes} == {name: name for name in classes}
    assert set(trioformer.testing.__all__) <= set(dir(trioformer.testing))
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        trioformer.testing.nope  # noqa: B018  # reading it raises

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


MANAGERS = """
    import pytest
    from trioformer.models import ObjectMeta
    from trioformer.models.core_v1 import ConfigMap

    async def managers(k8s_client, name):
        made = await k8s_client.apply(ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data={"x": "y"}))
        return [entry.manager for entry in made.metadata.managed_fields]

    async def test_option(k8s_client):
        assert await managers(k8s_client, "a") == ["{expected}"]

    class TestOwn:
        @pytest.fixture
        def k8s_field_manager(self): return "operator"

        async def test_fixture(self, k8s_client):
            assert await managers(k8s_client, "a") == ["operator"]
"""


@pytest.mark.parametrize(("options", "expected"), [([], "tests"), (["-o", "k8s_field_manager=mine"], "mine")])
async def test_the_client_has_a_field_manager_that_can_be_changed(
    tmp_path: Path, options: list[str], expected: str
) -> None:
    test = MANAGERS.replace("{expected}", expected)
    code, output = await run_pytest(tmp_path, test, "-o", "trio_mode=true", *options)
    assert code == 0, output


FAILING = """
    from trioformer.models import ObjectMeta
    from trioformer.models.core_v1 import Secret

    async def test_fails(api_server, k8s_client):
        secrets = k8s_client.api(Secret, namespace="default")
        api_server.create(Secret(metadata=ObjectMeta(name="a"), string_data={"password": "hunter2"}))
        await secrets.get("a")
        await secrets.delete("a")
        await secrets.list()
        await secrets.create(Secret(metadata=ObjectMeta(name="b")))
        await secrets.patch("b", {"data": {"x": "aHVudGVyMg=="}})
        raise AssertionError("failed")
"""


async def test_a_failed_test_shows_the_last_requests_and_the_objects_that_they_named(tmp_path: Path) -> None:
    code, output = await run_pytest(tmp_path, FAILING, "-o", "trio_mode=true", "--tb=short")
    assert code == 1
    text = "\n".join(output)
    assert "requests to the embedded API server" in text
    assert "s  list /api/v1/namespaces/default/secrets" in text
    assert "secrets default/a: does not exist" in text
    assert "secrets default/b: resourceVersion " in text
    assert "aHVudGVy" not in text


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

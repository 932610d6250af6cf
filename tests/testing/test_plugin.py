"""The pytest plugin, in a separate pytest process and in this one."""

from __future__ import annotations

import re
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import trioformer.testing
from tests.support.processes import result_of
from trioformer.client import Client
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.testing import APIServer

if not entry_points(group="pytest11", name="trioformer"):
    pytest_plugins = ["trioformer.testing._plugin"]


async def run_pytest(directory: Path, test: str, *options: str) -> tuple[int, list[str]]:
    lines = [line.removeprefix("    ") for line in test.splitlines()]
    file = directory / "test_it.py"
    file.write_text("\n".join(lines))
    is_installed = bool(entry_points(group="pytest11", name="trioformer"))
    arguments = [
        "-p",
        "no:asyncio",  # it is installed here, and warns without a setting of its own
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


TESTS = """
    from __future__ import annotations
    import pytest, trio
    from trioformer import SharedInformerFactory
    from trioformer.controller import Controller
    from trioformer.models import ObjectMeta
    from trioformer.models.core_v1 import ConfigMap, Pod, Secret

    async def test_watching(autojump_clock, api_server, k8s_client):
        made = api_server.create(Pod(metadata=ObjectMeta(name="a")))
        assert [pod.name for pod in await k8s_client.api(Pod).list()] == ["a"]
        async with k8s_client.api(Pod).watch(resource_version=made.resource_version, timeout_seconds=600) as events:
            api_server.delete(made)
            assert [event.type async for event in events] == ["DELETED"]
        assert trio.current_time() == 600

    async def managers(k8s_client):
        made = await k8s_client.apply(ConfigMap(metadata=ObjectMeta(name="a", namespace="default"), data={"x": "y"}))
        return [entry.manager for entry in made.metadata.managed_fields]

    async def test_option(k8s_client):
        assert await managers(k8s_client) == ["mine"]

    class TestOwn:
        @pytest.fixture
        def k8s_field_manager(self): return "operator"

        async def test_fixture(self, k8s_client):
            assert await managers(k8s_client) == ["operator"]

    @pytest.fixture
    def clock(autojump_clock): return autojump_clock
    @pytest.fixture
    def other(autojump_clock): return 1
    async def test_clock_of_another_fixture(other, api_server): ...
    @pytest.mark.usefixtures("mock_clock")
    async def test_clock_of_a_mark(k8s_client): ...
    async def test_clock_as_argument(other, autojump_clock, k8s_client): ...
    async def test_clock_under_another_name(clock, k8s_client): ...

    async def test_fails(api_server, k8s_client):
        secrets = k8s_client.api(Secret, namespace="default")
        api_server.create(Secret(metadata=ObjectMeta(name="a"), string_data={"password": "hunter2"}))
        await secrets.get("a")
        await secrets.delete("a")
        await secrets.list()
        await secrets.create(Secret(metadata=ObjectMeta(name="b")))
        await secrets.patch("b", {"data": {"x": "aHVudGVyMg=="}})
        await run_controller(k8s_client)
        raise AssertionError("failed")

    async def run_controller(client):
        async def reconcile(request):
            raise OSError("disk full")

        factory = SharedInformerFactory(client)
        controller = Controller("secrets", reconcile, max_retries=0)
        controller.watch(factory.informer(Secret))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(factory.run)
            await nursery.start(controller.run)
            await trio.sleep(0.1)
            nursery.cancel_scope.cancel()
"""


async def test_the_fixtures_and_the_reports_of_failed_tests(tmp_path: Path) -> None:
    options = ("-o", "trio_mode=true", "-o", "k8s_field_manager=mine", "--tb=short")
    code, output = await run_pytest(tmp_path, TESTS, *options)
    text = "\n".join(output)
    assert (code, output[-1].startswith("3 failed, 5 passed")) == (1, True), text
    for clock in ("autojump_clock", "mock_clock"):
        assert f"{clock} has no effect: pytest-trio uses a clock only if" in text
    assert "requests to the embedded API server" in text
    assert re.search(r"default/b \(\w+\): error in .*, because: initial secrets default/b\n +OSError: disk full", text)
    assert "s  list /api/v1/namespaces/default/secrets" in text
    assert "secrets default/a: does not exist" in text
    assert "secrets default/b: resourceVersion " in text
    assert "aHVudGVy" not in text


OWN_SERVER = """
    @pytest.fixture
    async def api_server(nursery):
        server = APIServer(garbage_collector=True)
        await nursery.start(server.run)
        return server
"""


async def test_the_report_of_a_failed_test_is_the_same_with_a_server_of_its_module(tmp_path: Path) -> None:
    tests = TESTS.replace(
        "import ConfigMap, Pod, Secret", f"import Secret\n    from trioformer.testing import APIServer\n{OWN_SERVER}"
    )
    code, output = await run_pytest(tmp_path, tests, "-o", "trio_mode=true", "-k", "test_fails")
    text = "\n".join(output)
    assert (code, output[-1].startswith("1 failed")) == (1, True), text
    assert "s  create /api/v1/namespaces/default/secrets" in text
    assert re.search(r"default/b \(\w+\): error in .*\n +OSError: disk full", text)


async def test_the_default_field_manager(k8s_client: Client) -> None:
    made = await k8s_client.apply(ConfigMap(metadata=ObjectMeta(name="a", namespace="default"), data={"x": "y"}))
    assert [entry.manager for entry in made.metadata.managed_fields] == ["tests"]


TESTS_WITHOUT_A_MODE = """
    import pytest
    async def test_async(k8s_client): ...
    def test_sync(api_server): ...
    @pytest.mark.trio
    async def test_marked(k8s_client): ...
"""


@pytest.mark.parametrize(
    ("options", "hint", "end"),
    [
        (["-p", "no:trio", "-W", "ignore"], "install it with `pip install 'trioformer[testing]'`", "3 errors"),
        ([], "or mark this test with @pytest.mark.trio", "1 passed, 2 errors"),
    ],
    ids=["without pytest-trio", "without trio_mode"],
)
async def test_a_test_that_cannot_run_on_trio_says_so_in_one_line(
    tmp_path: Path, options: list[str], hint: str, end: str
) -> None:
    code, output = await run_pytest(tmp_path, TESTS_WITHOUT_A_MODE, *options)
    assert code == 1
    assert sum(line.startswith("the fixtures of trioformer") and line.endswith(hint) for line in output) >= 2, output
    assert output[-1].startswith(end), output


async def test_the_plugin_imports_no_module_before_a_fixture_is_used() -> None:
    listing = "[name for name in sys.modules if name.startswith('trioformer.testing')]"
    program = f"import sys, trioformer.testing._plugin; print({listing})"
    code, output, errors = await result_of("-c", program)
    assert (code, errors) == (0, [])
    assert output == ["['trioformer.testing', 'trioformer.testing._simulation_options', 'trioformer.testing._plugin']"]


def test_the_package_provides_exactly_the_names_that_it_lists() -> None:
    for name in trioformer.testing.__all__:
        assert getattr(trioformer.testing, name).__name__ == name
    assert set(trioformer.testing.__all__) <= set(dir(trioformer.testing))
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        trioformer.testing.nope  # noqa: B018  # reading it raises

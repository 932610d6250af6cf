"""``pytest --trioformer-rbac``, in a run of pytest inside of the test, and with pytest-xdist."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

pytest_plugins = ["pytester"]

TESTS = """
from __future__ import annotations
import pytest, trio
from trioformer.controller import Controller
from trioformer.manager import run_controllers
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Secret


async def start(context):
    async def reconcile(request):
        api = context.client.api(Secret, namespace=request.namespace)
        await api.list()

    controller = Controller(context.name, reconcile)
    controller.watch(context.factory.informer(ConfigMap))
    return controller

async def test_manager(autojump_clock, api_server, k8s_client, nursery):
    await nursery.start(run_controllers, k8s_client, {"maps": start})
    await k8s_client.api(ConfigMap).create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
    await trio.sleep(5)
    nursery.cancel_scope.cancel()

async def test_marked_client(api_server):
    async with api_server.open_client(operator=True) as client:
        await client.request("GET", "/version")
        api = client.api(ConfigMap, namespace="web")
        with pytest.raises(Exception): await api.get("settings")
"""
USED = {
    ("ClusterRole", "", "configmaps", ("get", "list", "watch")),
    ("ClusterRole", "", "secrets", ("list",)),
}


def roles(path: Path) -> set[tuple[str, str, str, tuple[str, ...]]]:
    return {
        (document["kind"], group, plural, tuple(rule["verbs"]))
        for document in yaml.safe_load_all(path.read_text())
        for rule in document["rules"]
        for group in rule["apiGroups"]
        for plural in rule["resources"]
    }


def run(pytester: pytest.Pytester, path: Path, *options: str, test: str = TESTS) -> tuple[int, list[str]]:
    """Run pytest with a file, and return its exit code and its output."""
    pytester.makepyfile(test_it=test)
    given = ("-c", "/dev/null", "-p", "no:asyncio", "-p", "no:cacheprovider", "-o", "trio_mode=true")
    result = pytester.runpytest_inprocess(*given, "--trioformer-rbac", str(path), *options)
    return int(result.ret), result.outlines


def test_the_role_is_written_and_then_equal(pytester: pytest.Pytester, tmp_path: Path) -> None:
    path = tmp_path / "role.yaml"
    code, output = run(pytester, path)
    assert (code, path.exists()) == (1, False), output
    assert any("--trioformer-rbac-write" in line for line in output)
    code, output = run(pytester, path, "--trioformer-rbac-write")
    assert (code, roles(path)) == (0, USED), output
    code, output = run(pytester, path)
    assert code == 0, output
    assert any("4 permissions" in line for line in output)


def test_the_processes_of_xdist_record_one_role(pytester: pytest.Pytester, tmp_path: Path) -> None:
    path = tmp_path / "role.yaml"
    code, output = run(pytester, path, "-n", "1", "--trioformer-rbac-write")
    assert (code, roles(path)) == (0, USED), output


def test_a_difference_is_an_error_with_a_diff(pytester: pytest.Pytester, tmp_path: Path) -> None:
    path = tmp_path / "role.yaml"
    run(pytester, path, "--trioformer-rbac-write")
    before = path.read_text().replace("[list]", "[list, delete]")
    path.write_text(before)
    code, output = run(pytester, path)
    assert (code, path.read_text()) == (1, before), output
    assert any(line.startswith("-") and "delete" in line for line in output)
    assert any(line.startswith("+") and "list" in line for line in output)


def test_a_run_with_a_failure_is_not_compared(pytester: pytest.Pytester, tmp_path: Path) -> None:
    path = tmp_path / "role.yaml"
    code, output = run(pytester, path, "--trioformer-rbac-write", test="def test_failing(): assert False")
    assert (code, path.exists()) == (1, False)
    assert any("not compared" in line for line in output)


def test_tests_without_an_operator_are_an_error(pytester: pytest.Pytester, tmp_path: Path) -> None:
    path = tmp_path / "role.yaml"
    code, output = run(pytester, path, "--trioformer-rbac-write", test="def test_nothing(): pass")
    assert (code, path.exists()) == (1, False)
    assert any("operator=True" in line for line in output)


PROVED = """
import trio
from trioformer.models.core_v1 import ConfigMap, Pod, Secret

async def test_waiting(autojump_clock, api_server, nursery):
    done = trio.Event()

    async def operate():
        async with api_server.open_client(operator=True) as client:
            await client.api(ConfigMap).list()
            try:
                await client.api(Secret).list()  # for nothing
            except Exception:
                pass
            while True:
                try:
                    await client.api(Pod).list()
                except Exception:
                    await trio.sleep(30)
                else:
                    break
            done.set()
            await trio.sleep_forever()

    nursery.start_soon(operate)
    await done.wait()
"""


def test_a_permission_that_no_test_needs_is_an_error(pytester: pytest.Pytester, tmp_path: Path) -> None:
    path = tmp_path / "role.yaml"
    options = ("--trioformer-rbac-write", "--trioformer-rbac-prove")
    code, output = run(pytester, path, *options, test=PROVED)
    assert code == 1, output
    assert "3 permissions, 2 needed" in output
    assert [line for line in output if line.endswith("permission: list secrets")], output
    assert "not needed: list secrets" in output  # while the proof runs
    assert "needed: list pods" in output
    code, output = run(pytester, path, *options, test=PROVED.replace("Secret).list()  # for nothing", "Pod).list()"))
    assert (code, "2 permissions, 2 needed" in output) == (0, True), output


RECOVERING = """
from tests.testing.simulation.operators import Maps, operate
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Secret
from trioformer.testing.simulation import simulate

def test_stories():
    simulate(operate, Maps, stories=40).check()

async def test_unclear_write(autojump_clock, api_server, nursery):
    async def run():
        async with api_server.open_client(operator=True) as client:
            await operate(client)

    nursery.start_soon(run)
    api_server.fail_next(verb="create", resource="secrets", status=500)
    metadata = ObjectMeta(name="one", namespace="default")
    api_server.create(ConfigMap(metadata=metadata, data={"count": "1"}))
    await api_server.expect(Secret, "one-0", lambda _: True)
"""


def test_what_is_only_for_recovery_is_needed_and_no_story_is_shrunk(pytester: pytest.Pytester, tmp_path: Path) -> None:
    path = tmp_path / "role.yaml"
    options = ("--trioformer-rbac-write", "--trioformer-rbac-prove")
    code, output = run(pytester, path, *options, test=RECOVERING)
    assert code == 0, output
    for verb in ("list", "create", "delete"):
        assert f"needed: {verb} secrets" in output
    assert "needed: patch configmaps" in output
    assert {f"needed by definition: watch {each}" for each in ("configmaps", "secrets")} <= set(output)
    assert {f"needed after faults: get {each}" for each in ("configmaps", "secrets")} <= set(output)
    assert not (pytester.path / ".trioformer").exists()


def test_the_proof_needs_one_process(pytester: pytest.Pytester, tmp_path: Path) -> None:
    result = pytester.runpytest_inprocess("-n", "2", "--trioformer-rbac", "a", "--trioformer-rbac-prove")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*leave out -n*"])


@pytest.mark.parametrize("options", [(), ("--trioformer-rbac-write",)])
def test_a_path_that_is_no_file_is_one_line(
    pytester: pytest.Pytester, tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = tmp_path / "no-folder" / "role.yaml" if options else tmp_path
    code, output = run(pytester, path, *options)
    assert code == 1, output
    assert any(line.startswith(f"{path} cannot be ") for line in output), output


@pytest.mark.parametrize("option", ["--trioformer-rbac-write", "--trioformer-rbac-prove"])
def test_the_options_need_a_file(pytester: pytest.Pytester, option: str) -> None:
    result = pytester.runpytest_inprocess(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*trioformer-rbac=FILE*"])

"""``wait``: conditions, deadlines, and the lines that say so."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support.cli import Result, run
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.testing import APIServer

EXAMPLE = "--for=jsonpath='{.status.readyReplicas}'"
TIMED_OUT = "error: timed out waiting for the condition"


def add_pod(server: APIServer, name: str, ready: str = "True", **metadata: object) -> None:
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", **metadata}}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
    server.create({**head, "spec": {"containers": [{"name": "main", "image": "x"}]}, "status": status})


def set_ready(server: APIServer, name: str, ready: str) -> None:
    server.patch(Pod, name, {"status": {"conditions": [{"type": "Ready", "status": ready}]}})


@pytest.mark.parametrize(
    "condition",
    [
        "condition=Ready",
        "condition=ready=TRUE",
        "jsonpath={.status.phase}=Running",
        "jsonpath=.status.phase=Running",
        "jsonpath={.status.phase}",
        "jsonpath='{.status.phase}'='Running'",
        'jsonpath={.status.conditions[?(@.type=="Ready")].status}=True',
        "create",
    ],
)
async def test_a_condition_that_is_met_ends_the_wait(api_server: APIServer, condition: str) -> None:
    add_pod(api_server, "one")
    result = await run(api_server, "wait", "pod/one", f"--for={condition.replace(chr(39), '')}")
    assert (result.code, result.out, result.err) == (0, "pod/one condition met\n", "")


async def wait_while(server: APIServer, change: object, *arguments: str) -> Result:
    """Run ``wait``, and change something once it waits."""
    results = []

    async def run_it() -> None:
        results.append(await run(server, "wait", *arguments))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_it)
        await wait_all_tasks_blocked()
        assert results == []
        change()  # type: ignore[operator]  # a lambda
    return results[0]


async def test_a_condition_is_waited_for(api_server: APIServer, mock_clock: MockClock) -> None:
    add_pod(api_server, "one", ready="False")
    result = await wait_while(
        api_server, lambda: set_ready(api_server, "one", "True"), "pod", "one", "--for=condition=Ready"
    )
    assert result.out == "pod/one condition met\n"


async def test_another_object_of_the_name_may_meet_it(api_server: APIServer, mock_clock: MockClock) -> None:
    add_pod(api_server, "one", ready="False")

    def replace() -> None:
        api_server.delete(Pod, "one")
        add_pod(api_server, "one")

    result = await wait_while(api_server, replace, "pod/one", "--for=condition=Ready", "-o", "name")
    assert result.out == "pod/one\n"


async def test_a_deletion_is_waited_for(api_server: APIServer, mock_clock: MockClock) -> None:
    add_pod(api_server, "one")
    result = await wait_while(api_server, lambda: api_server.delete(Pod, "one"), "pod/one", "--for=delete")
    assert (result.code, result.out) == (0, "pod/one condition met\n")


async def test_what_is_gone_already_is_deleted(api_server: APIServer) -> None:
    result = await run(api_server, "wait", "pod/none", "--for=delete")
    assert (result.code, result.out, result.err) == (0, "", "")


@pytest.mark.parametrize("named", [["pod/one"], ["pods", "-l", "app=web"]], ids=["named", "selected"])
async def test_a_creation_is_waited_for(api_server: APIServer, mock_clock: MockClock, named: list[str]) -> None:
    def create() -> None:
        add_pod(api_server, "one", labels={"app": "web"})

    result = await wait_while(api_server, create, *named, "--for=create", "--for=condition=Ready")
    assert (result.code, result.out) == (0, "pod/one condition met\npod/one condition met\n")


async def test_a_wait_ends_at_its_deadline(api_server: APIServer, autojump_clock: MockClock) -> None:
    add_pod(api_server, "one", ready="False")
    began = trio.current_time()
    result = await run(api_server, "wait", "pod/one", "--for=condition=Ready", "--timeout=1m30s")
    assert (result.code, result.err) == (1, f"{TIMED_OUT} on pods/one\n")
    assert trio.current_time() == began + 90
    result = await run(api_server, "wait", "pod/none", "--for=create", "--timeout=5s")
    assert (result.code, result.err) == (1, f"{TIMED_OUT}\n")


async def test_all_are_waited_for_and_those_that_are_ready_are_reported(
    api_server: APIServer, autojump_clock: MockClock
) -> None:
    for name, ready in (("a", "True"), ("b", "False"), ("c", "True")):
        add_pod(api_server, name, ready)
    result = await run(api_server, "wait", "pods", "--all", "--for=condition=Ready", "--timeout=5s")
    assert result.code == 1
    assert result.out == "pod/a condition met\npod/c condition met\n"
    assert result.err == f"{TIMED_OUT} on pods/b\n"


async def test_without_a_timeout_the_state_is_checked_once(api_server: APIServer) -> None:
    add_pod(api_server, "one", ready="False")
    for condition in ("condition=Ready", "delete"):
        result = await run(api_server, "wait", "pod/one", f"--for={condition}", "--timeout=0")
        assert (result.code, result.err) == (1, "error: condition not met for pods/one\n")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["pod/one"], "unrecognized condition: []"),
        (["pod/one", "--for=ready"], 'unrecognized condition: "ready"'),
        (["pod/one", "--for=jsonpath="], "jsonpath expression cannot be empty"),
        (
            ["pod/one", "--for=jsonpath={.a}=1=2"],
            f"jsonpath wait format must be {EXAMPLE}=3 or {EXAMPLE}",
        ),
        (
            ["pod/one", "--for=jsonpath={.a}="],
            f"jsonpath wait has to have a value after equal sign, like {EXAMPLE}=3",
        ),
        (
            ["pod/one", "--for=jsonpath={.status}=x"],
            "jsonpath leads to a nested object or list which is not supported",
        ),
        (
            ["pod/one", "--for=jsonpath={.metadata['name', 'uid']}=x"],
            "given jsonpath expression matches more than one value",
        ),
        (["pods", "--for=condition=Ready"], "resource(s) were provided, but no name was specified"),
        (["pods", "-l", "app=none", "--for=condition=Ready"], "no matching resources found"),
        (["-l", "app=none", "--for=condition=Ready"], "at least one resource must be specified to use a selector"),
        (
            ["pod/one", "--for=delete", "--timeout=x"],
            'invalid argument "x" for "--timeout" flag: time: invalid duration "x"',
        ),
        (["pod/one", "--for=create", "-o", "wide"], 'unable to match a printer suitable for the output format "wide"'),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_mistakes_are_one_line(api_server: APIServer, arguments: list[str], problem: str) -> None:
    add_pod(api_server, "one")
    result = await run(api_server, "wait", *arguments)
    assert (result.code, result.err.splitlines()[0]) == (1, f"error: {problem}")


async def test_each_object_that_is_missing_has_a_line(api_server: APIServer) -> None:
    add_pod(api_server, "one")
    result = await run(api_server, "wait", "pod/none", "pod/one", "pod/other", "--for=condition=Ready")
    assert result.out == "pod/one condition met\n"
    assert result.err == "".join(
        f'Error from server (NotFound): pods "{name}" not found\n' for name in ("none", "other")
    )


async def test_any_value_of_a_field_may_be_waited_for(api_server: APIServer, mock_clock: MockClock) -> None:
    api_server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}})
    result = await wait_while(
        api_server,
        lambda: api_server.patch(ConfigMap, "c", {"data": {"a": "x"}}),
        "cm/c",
        "--for=jsonpath={.data.a}",
        "--timeout=-1s",
    )
    assert result.out == "configmap/c condition met\n"


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("{.status.conditions[9]}", "array index out of bounds: index 9, length 1"),
        (
            "{.status.phase}{.metadata.name}",
            "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'",
        ),
        ("{.metadata['name', 'namespace']}", "given jsonpath expression matches more than one value"),
        ("{.metadata}=x", "jsonpath leads to a nested object or list which is not supported"),
        ("{.a[}", "unterminated array"),
        ("{.a[}=x", "unterminated array"),
    ],
)
async def test_a_path_that_has_no_one_value_is_an_error(api_server: APIServer, path: str, error: str) -> None:
    add_pod(api_server, "one")
    result = await run(api_server, "wait", "pod/one", f"--for=jsonpath={path}")
    assert (result.code, result.out, result.err) == (1, "", f"error: {error}\n")


async def test_the_creation_of_several_is_waited_for(api_server: APIServer) -> None:
    add_pod(api_server, "one")
    add_pod(api_server, "two")
    for named in (["pod/one", "pod/two"], ["pods", "--field-selector=metadata.name=one"]):
        result = await run(api_server, "wait", *named, "--for=create")
        assert (result.code, result.err) == (0, "")
        assert result.out.splitlines()[0] == "pod/one condition met"

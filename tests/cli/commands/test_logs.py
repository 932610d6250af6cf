"""``logs``: which containers are meant, what is printed of them, and what ends a log that is followed."""

from __future__ import annotations

import io

import pytest
import trio
from trio.testing import MockClock

from tests.support.cli import Output, opener_of, run
from trioformer.cli._main import run_command
from trioformer.testing import APIServer, ScriptedPod

TEMPLATE = {
    "selector": {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]},
    "template": {"metadata": {"labels": {"app": "web", "tier": "1"}}, "spec": {"containers": [{"name": "a"}]}},
}


def add_pod(server: APIServer, name: str, *containers: str, **metadata: object) -> ScriptedPod:
    spec = {"nodeName": "node-1", "containers": [{"name": each, "image": "x"} for each in containers or ("main",)]}
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", **metadata}}
    server.create({**head, "spec": spec})
    return server.script_pod(name)


@pytest.fixture
def web(api_server: APIServer) -> list[ScriptedPod]:
    """Create a Deployment with two pods of two containers, each with a log of three lines."""
    head = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}}
    api_server.create({**head, "spec": TEMPLATE})
    pods = [add_pod(api_server, f"web-{n}", "a", "b", labels={"app": "web", "tier": "1"}) for n in (1, 2)]
    for pod in pods:
        for container in ("a", "b"):
            pod.write_log(*(f"{pod.name} {container} {n}" for n in range(3)), container=container)
    return pods


async def test_the_log_of_a_pod_is_printed_as_it_is(api_server: APIServer) -> None:
    add_pod(api_server, "one").write(b"first\nb\xc3\xa4\nlast\n")
    result = await run(api_server, "logs", "one")
    assert (result.code, result.out, result.err) == (0, "first\nbä\nlast\n", "")
    assert (await run(api_server, "logs", "one", "--tail=1")).out == "last\n"
    stamped = await run(api_server, "logs", "one", "--timestamps", "--tail=1")
    assert stamped.out.endswith("Z last\n")


@pytest.mark.parametrize(
    ("arguments", "out", "err"),
    [
        (["web-1"], "web-1 a 2\n", 'Defaulted container "a" out of: a, b\n'),
        (["web-1", "-c", "b"], "web-1 b 2\n", ""),
        (["pod/web-2", "-cb", "--prefix"], "[pod/web-2/b] web-2 b 2\n", ""),
        (["web-1", "--all-containers"], "web-1 a 2\nweb-1 b 2\n", ""),
        (["deploy/web", "-c", "a"], "web-1 a 2\n", "Found 2 pods, using pod/web-1\n"),
        (["-l", "app=web", "-c", "a"], "web-1 a 2\nweb-2 a 2\n", ""),
        (["-l", "app=other"], "", "No resources found in default namespace.\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_pods_and_containers_are_chosen_as_by_kubectl(
    api_server: APIServer, web: list[ScriptedPod], arguments: list[str], out: str, err: str
) -> None:
    assert len(web) == 2
    result = await run(api_server, "logs", *arguments, "--tail=1")
    assert (result.code, result.out, result.err) == (0, out, err)


async def test_the_annotation_names_the_default_container(api_server: APIServer) -> None:
    name = "kubectl.kubernetes.io/default-container"
    add_pod(api_server, "one", "a", "b", annotations={name: "b"}).write_log("from b", container="b")
    assert (await run(api_server, "logs", "one")).out == "from b\n"


async def test_a_selector_prints_the_last_ten_lines(api_server: APIServer) -> None:
    add_pod(api_server, "one", labels={"app": "web"}).write_log(*map(str, range(20)))
    lines = (await run(api_server, "logs", "-l", "app=web")).out.split()
    assert lines == [str(number) for number in range(10, 20)]
    assert len((await run(api_server, "logs", "-l", "app=web", "--tail=15")).out.split()) == 15


async def test_the_previous_instance_is_printed(api_server: APIServer) -> None:
    pod = add_pod(api_server, "one")
    pod.write_log("before")
    pod.restart()
    pod.write_log("after")
    assert (await run(api_server, "logs", "one", "-p")).out == "before\n"
    assert (await run(api_server, "logs", "one", "-f", "-p")).out == "before\n"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["one", "-l", "app=web"], "a pod, TYPE/NAME or -l is required"),
        (["one", "--all-containers", "-c", "a"], "--all-containers and --container cannot be combined"),
        ([""], "'' is not a valid object name"),
        (["none"], 'error from server (NotFound): pods "none" not found in namespace "default"'),
        (["one", "-c", "x"], "container x is not valid for pod one out of: main"),
        (["cm/c"], "cannot get the logs from *v1.ConfigMap: selector for *v1.ConfigMap not implemented"),
        (["svc/s"], "cannot get the logs from *v1.Service: invalid service 's': Service is defined without a selector"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_mistakes_are_one_line_in_the_words_of_kubectl(
    api_server: APIServer, arguments: list[str], problem: str
) -> None:
    add_pod(api_server, "one")
    metadata = {"namespace": "default"}
    api_server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **metadata}})
    spec = {"ports": [{"port": 80}]}
    api_server.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", **metadata}, "spec": spec})
    result = await run(api_server, "logs", *arguments)
    assert (result.code, result.err.splitlines()[0]) == (1, f"error: {problem}")


async def follow(server: APIServer, out: Output, err: io.StringIO, *arguments: str) -> int:
    given = ["--server", server.config.server, "logs", "-f", *arguments]
    return await run_command(given, out, err, {}, opener_of(server.http_transport()))


async def test_a_followed_log_goes_on_after_a_broken_connection(
    api_server: APIServer, autojump_clock: MockClock
) -> None:
    pod, out, err, codes = add_pod(api_server, "one"), Output(), io.StringIO(), []

    async def run_it() -> None:
        codes.append(await follow(api_server, out, err, "one"))

    async with trio.open_nursery() as nursery:
        pod.write_log("first")
        nursery.start_soon(run_it)
        await out.wait_for(1)
        pod.disconnect("reset")
        pod.write_log("second")
        assert await out.wait_for(2) == ["first", "second"]
        pod.end()
    assert codes == [0]
    assert out.getvalue() == "first\nsecond\n"
    assert err.getvalue().startswith("Warning: ")


async def test_several_logs_are_followed_at_once_and_all_must_end(
    api_server: APIServer, web: list[ScriptedPod], autojump_clock: MockClock
) -> None:
    out, err, codes = Output(), io.StringIO(), []

    async def run_it() -> None:
        arguments = ["-l", "app=web", "--prefix", "--all-containers", "--tail=1"]
        codes.append(await follow(api_server, out, err, *arguments))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_it)
        await out.wait_for(4)
        web[1].write_log("new", container="b")
        assert (await out.wait_for(5))[4] == "[pod/web-2/b] new"
        for pod in web:
            assert codes == []
            for container in ("a", "b"):
                pod.end(container=container)
    assert codes == [0]

"""``logs``, ``exec`` and ``attach`` beside kubectl, on pods of the embedded server."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import trio

from tests.e2e.kubectl_programs import PAGE, Programs, config_of, write_kubeconfig
from trioformer.testing import APIServer, ScriptedProcess, serve_http

INVOCATIONS: Final = """
logs one
logs pod/one
logs one main
logs one -c main
logs one -c none
logs one --tail=1
logs one --tail=0
logs one --tail=-1
logs one --tail=-2
logs one --timestamps --tail=1
logs one --limit-bytes=7
logs one --limit-bytes=0
logs one --since=1h
logs one --since=0
logs one --since=1h --since-time=2026-01-02T03:04:05Z
logs one --since-time=2020-01-02T03:04:05Z
logs one --since-time=2100-01-02T03:04:05Z
logs one --since-time=x
logs one --previous
logs one --prefix
logs one --timestamps --prefix --tail=1
logs one -p=false
logs two
logs two -c b
logs two --all-containers
logs two --all-containers --prefix
logs two --all-containers -c a
logs two --all-containers=true --tail=1
logs one two
logs one main more
logs deploy/web
logs deploy web
logs deploy/web --all-pods
logs rs/none
logs -l app=web
logs -l app=web --prefix
logs -l app=web --tail=1
logs -l app=web --tail=-1 --max-log-requests=1
logs -l app=none
logs -l app=web one
logs -l 'a in'
logs none
logs cm/none
logs one -n none
logs one --limit-bytes=x
exec one -- echo hello
exec pod/one -c main -- echo hello
exec one -- fail
exec one -- none
exec two -- name
exec two -c b -- name
exec two -c none -- name
exec two -q -- name
exec deploy/web -- name
exec one -t -- echo hello
exec one echo hello
exec one
exec one --
exec -- echo
exec none -- echo
exec cm/none -- echo
exec done -- echo
exec one -c main -n default -- echo hello
attach none
attach one -c none
attach done
attach
""".strip().splitlines()

DIFFERENCES: Final = {
    "logs one -n none": "``logs`` in a namespace that does not exist says that the pod does not.",
}
"""What is answered differently, each with the reason, which docs/howto/command-line.rst has too."""


def create_pod(server: APIServer, name: str, *containers: str, phase: str = "Running", app: str = "") -> None:
    found = [{"name": each, "image": "x"} for each in containers or ("main",)]
    metadata = {"name": name, "namespace": "default", "labels": {"app": app} if app else {}}
    state = {"running": {"startedAt": "2026-01-02T03:04:05Z"}}
    statuses = [{**each, "imageID": "", "ready": True, "restartCount": 0, "state": state} for each in found]
    server.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"nodeName": "node-1", "containers": found},
            "status": {"phase": phase, "containerStatuses": statuses},
        }
    )


async def name_container(process: ScriptedProcess) -> int:
    await process.stdout.send_all(f"{process.container}\n".encode())
    return 0


def set_up(server: APIServer) -> None:
    create_pod(server, "one")
    create_pod(server, "two", "a", "b")
    create_pod(server, "web-1", app="web")
    create_pod(server, "web-2", app="web")
    create_pod(server, "done", phase="Succeeded")
    server.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "waiting", "namespace": "default"},
            "spec": {"containers": [{"name": "main", "image": "x"}]},
        }
    )
    selector = {"matchLabels": {"app": "web"}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    server.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"replicas": 2, "selector": selector, "template": template},
        }
    )
    for name in ("one", "web-1", "web-2"):
        for number in range(3):
            server.script_pod(name).write_log(f"{name} {number}")
    for container in ("a", "b"):
        server.script_pod("two").write_log(f"of {container}", container=container)
    one = server.script_pod("one")
    one.script_command(["echo", "hello"], stdout="hello\n", stderr="err\n")
    one.script_command(["fail"], stderr="failed\n", exit_code=3)
    for name in ("two", "web-1", "web-2"):
        server.script_pod(name).on_exec(name_container)


async def test_logs_and_processes_are_those_of_kubectl(assets: Path, tmp_path: Path) -> None:
    server = APIServer()
    set_up(server)
    async with trio.open_nursery() as nursery:
        url = await nursery.start(serve_http, server)
        programs = Programs(assets / "kubectl", write_kubeconfig(tmp_path / "config", config_of(url), "default"))
        found = await programs.compare_all(INVOCATIONS)
        unexpected = [f"{each}\n{text}" for each, text in sorted(found.items()) if each not in DIFFERENCES]
        assert not unexpected, f"{len(unexpected)} differ:\n\n" + "\n\n".join(unexpected)
        assert found.keys() == DIFFERENCES.keys()
        nursery.cancel_scope.cancel()


def test_every_difference_is_in_the_documentation() -> None:
    page = " ".join(PAGE.read_text().split())
    assert [reason for reason in DIFFERENCES.values() if reason not in page] == []

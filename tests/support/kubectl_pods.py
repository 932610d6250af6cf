"""Scripted pods of an embedded server, and what is asked of them: logs, and commands in containers."""

from __future__ import annotations

from typing import Final

from trioformer.testing import APIServer, ScriptedProcess

__all__ = ["OF_PODS", "create_pods"]

OF_PODS: Final = """
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


def _create_pod(server: APIServer, name: str, *containers: str, phase: str = "Running", app: str = "") -> None:
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


async def _name_container(process: ScriptedProcess) -> int:
    await process.stdout.send_all(f"{process.container}\n".encode())
    return 0


def create_pods(server: APIServer) -> None:
    """Create the pods, and say what their commands do."""
    _create_pod(server, "one")
    _create_pod(server, "two", "a", "b")
    _create_pod(server, "web-1", app="web")
    _create_pod(server, "web-2", app="web")
    _create_pod(server, "done", phase="Succeeded")
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
        server.script_pod(name).on_exec(_name_container)

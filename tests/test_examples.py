"""The programs in ``examples/`` do what they say; those of ``pod_logger.py`` are tested in ``test_pod_logger.py``."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from examples import custom_resource, indexes, list_and_watch
from tests.processes import result_of, running
from trioformer import Client, SharedInformerFactory
from trioformer.models import from_dict, to_dict
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, serve_http

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: embedded
contexts: [{{name: embedded, context: {{cluster: embedded}}}}]
clusters: [{{name: embedded, cluster: {{server: "{url}"}}}}]
"""


def pod(name: str, *, app: str = "web", node: str = "node-1", image: str = "nginx") -> Pod:
    metadata = {"name": name, "namespace": "default", "labels": {"app": app}}
    spec = {"nodeName": node, "containers": [{"name": "main", "image": image}]}
    return from_dict(Pod, {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}})


@pytest.fixture
async def served(nursery: trio.Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> APIServer:
    """An API server on a real socket, which ``$KUBECONFIG`` leads to."""
    server = APIServer()
    url = await nursery.start(serve_http, server)
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG.format(url=url))
    monkeypatch.setenv("KUBECONFIG", str(file))
    return server


async def test_the_readmes_program_counts_pods_and_follows_them(served: APIServer) -> None:
    served.create(pod("web-0"))
    served.create(pod("api-0", app="api"))
    with trio.fail_after(30):
        async with running("examples/follow_pods.py") as program:
            await program.wait_for_line("1 pods of app=web")
            served.create(pod("web-1"))
            await program.wait_for_line("new: web-1")
            served.patch(Pod, "web-1", {"status": {"phase": "Failed"}})
            await program.wait_for_line("changed: web-1 Failed")
            served.delete(Pod, "web-1")
            await program.wait_for_line("gone: web-1")
    assert program.errors == []


async def test_listing_and_watching_resumes_when_the_server_ends_the_watch(served: APIServer) -> None:
    served.create(pod("web-0"))
    with trio.fail_after(30):
        async with running("examples/list_and_watch.py") as program:
            await program.wait_for(lambda lines: any(line.split() == ["web-0", "Running", "node-1"] for line in lines))
            served.create(pod("web-1"))
            await program.wait_for(lambda lines: any(line.split() == ["ADDED", "web-1"] for line in lines))
            served.disconnect_watches()
            await program.wait_for(lambda lines: any(line.split() == ["web-1", "Running", "node-1"] for line in lines))
    assert program.errors == []


async def test_listing_and_watching_ends_after_the_seconds_it_was_given(served: APIServer) -> None:
    served.create(pod("web-0"))
    code, lines, errors = await result_of("examples/list_and_watch.py", "--for", "0.1")
    assert (code, len(lines), errors) == (0, 1, [])


async def test_a_pod_is_labelled_and_a_missing_one_is_told(
    api_server: APIServer, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    api_server.create(pod("web-0"))
    await list_and_watch.label(client, "default", "web-0", seen="yes")
    await list_and_watch.label(client, "default", "web-9", seen="yes")
    assert api_server.get(Pod, "web-0").metadata.labels == {"app": "web", "seen": "yes"}
    assert capsys.readouterr().out == "there is no pod web-9\n"


async def test_the_report_counts_nodes_and_images(api_server: APIServer, client: Client, nursery: trio.Nursery) -> None:
    for made in (pod("a"), pod("b"), pod("c", node="node-2", image="busybox"), pod("d", node="")):
        api_server.create(made)
    factory = SharedInformerFactory(client)
    informer = factory.informer(Pod, indexers=indexes.INDEXERS)
    await nursery.start(factory.run)
    assert indexes.report(informer.lister) == ["node-1: a, b", "node-2: c", "busybox: 1", "nginx: 3"]


async def test_the_report_is_printed(served: APIServer) -> None:
    served.create(pod("a"))
    assert await result_of("examples/indexes.py") == (0, ["node-1: a", "nginx: 1"], [])


async def test_a_custom_resource_is_created_and_scaled(served: APIServer) -> None:
    served.register(custom_resource.CronTab)
    assert await result_of("examples/custom_resource.py") == (0, ["every-five-minutes 3"], [])


async def test_scaling_a_custom_resource_keeps_what_its_class_does_not_know(
    api_server: APIServer, client: Client
) -> None:
    api_server.register(custom_resource.CronTab)
    api_server.create(
        {
            "apiVersion": "stable.example.com/v1",
            "kind": "CronTab",
            "metadata": {"name": "nightly"},
            "spec": {"cronSpec": "0 3 * * *", "suspend": True},
        }
    )
    changed = await custom_resource.scale(client, "nightly", replicas=2)
    assert to_dict(changed)["spec"] == {"cronSpec": "0 3 * * *", "suspend": True, "replicas": 2}

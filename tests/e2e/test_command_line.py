"""The command line tool beside kubectl: the same output, errors and exit codes, on kube-apiserver and embedded.

Ages are made equal, and so are the names of the programs; everything else is compared to the letter, with all spaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import trio
import yaml

from tests.e2e.kubectl_programs import PAGE, Programs, config_of, write_kubeconfig
from tests.e2e.workloads import is_rolled_out, make_namespace
from tests.support.kubectl_invocations import DIFFERENCES, OF_SERVERS, OF_THE_TOOL
from tests.support.kubectl_server import OBJECTS, make_server
from trioformer import open_client
from trioformer.manifests import apply_manifests, load_manifests
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import Pod
from trioformer.testing import ControlPlane, serve_http
from trioformer.watchtools import has_condition, wait_for


def check(found: Mapping[str, str]) -> None:
    unexpected = [f"{each}\n{text}" for each, text in sorted(found.items()) if each not in DIFFERENCES]
    assert not unexpected, f"{len(unexpected)} differ:\n\n" + "\n\n".join(unexpected)


async def test_output_on_kube_apiserver_is_that_of_kubectl(cluster: ControlPlane, assets: Path, tmp_path: Path) -> None:
    async with open_client(kubeconfig=cluster.kubeconfig) as client:
        namespace = await make_namespace(client, "cli")
        await apply_manifests(client, load_manifests(OBJECTS), namespace=namespace, field_manager="test")
        with trio.fail_after(60):
            deployments = client.api(Deployment, namespace=namespace)
            await wait_for(deployments, "web", lambda web: web is not None and is_rolled_out(web))
            await wait_for(client.api(Pod, namespace=namespace), "solo", has_condition("Ready"))
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    programs = Programs(assets / "kubectl", write_kubeconfig(tmp_path / "kubeconfig", config, namespace))
    found = await programs.compare_all([*OF_SERVERS, *OF_THE_TOOL])
    check(found)
    assert found.keys() == DIFFERENCES.keys()  # what was mended is no difference any more


async def test_output_on_the_embedded_server_is_that_of_kubectl(assets: Path, tmp_path: Path) -> None:
    server = make_server()
    async with trio.open_nursery() as nursery:
        url = await nursery.start(serve_http, server)
        programs = Programs(assets / "kubectl", write_kubeconfig(tmp_path / "kubeconfig", config_of(url), "default"))
        check(await programs.compare_all(OF_SERVERS))
        nursery.cancel_scope.cancel()


def test_every_difference_is_in_the_documentation() -> None:
    assert set(DIFFERENCES) <= {*OF_SERVERS, *OF_THE_TOOL}
    page = " ".join(PAGE.read_text().split())
    assert [reason for reason in DIFFERENCES.values() if reason not in page] == []

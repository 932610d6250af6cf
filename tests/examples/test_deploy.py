"""``examples/deploy``: the manifests fit ``examples/website_operator.py``, and permit what it requests."""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing
import yaml

from examples.website_operator import NAME, Website, WebsiteSpec, serve
from tests.support.processes import ROOT, result_here
from trioformer import Client, open_client, wait_for
from trioformer.crds import install_crds
from trioformer.crds._definition import crds_of
from trioformer.manifests import apply_manifests, load_manifests
from trioformer.models import ObjectMeta, to_dict
from trioformer.models.apiextensions_v1 import CustomResourceDefinition
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import Secret
from trioformer.testing import APIServer

DEPLOY = ROOT / "examples" / "deploy"
MANIFESTS = DEPLOY / "manifests"


def documents() -> Iterator[dict[str, Any]]:
    for path in MANIFESTS.iterdir():
        yield from yaml.safe_load_all(path.read_text())


def document(kind: str) -> dict[str, Any]:
    (found,) = (each for each in documents() if each["kind"] == kind)
    return found


def dockerfile(instruction: str) -> list[str]:
    """Return the arguments of the instructions of this name."""
    return re.findall(rf"^{instruction} (.*)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)


async def test_replicas_operate_in_all_namespaces_and_lead_in_their_own(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    server = APIServer(garbage_collector=True)
    await nursery.start(server.run)
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAME}})
    async with server.open_client() as administrator:
        await install_crds(administrator, Website)  # as manifests/crd.yaml does
    config = attrs.evolve(server.config, namespace=NAME)

    async def operate(stop: trio.Event) -> None:
        async with open_client(config, http_transport=server.http_transport()) as client:
            await serve(client, stop)

    replicas = [trio.Event(), trio.Event()]
    for stop in replicas:
        nursery.start_soon(operate, stop)
        await trio.sleep(30)
    server.create(Secret(metadata=ObjectMeta(name="settings", namespace="default")))
    spec = WebsiteSpec(page="Hello", secret="settings")  # a name
    server.fail_next(verb="patch", resource="websites.example.com", status=409)
    server.create(Website(metadata=ObjectMeta(name="hello", namespace="default"), spec=spec))
    await trio.sleep(30)
    replicas[0].set()  # the other one leads
    await trio.sleep(60)
    server.delete(Website, "hello")
    await trio.sleep(30)
    assert server.list(Website) == []
    replicas[1].set()
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("change", [{"theme": {"type": "string"}}, {"secret": None}])
async def test_the_operator_works_with_the_definition_of_an_older_or_a_newer_version(
    change: Any, api_server: APIServer, k8s_client: Client, nursery: trio.Nursery, autojump_clock: object
) -> None:
    (definition,) = crds_of(Website)
    stored = to_dict(definition)
    spec = stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"] = {name: each for name, each in {**spec["properties"], **change}.items() if each is not None}
    await k8s_client.api(CustomResourceDefinition).apply(stored, field_manager="kubectl-client-side-apply")
    stop = trio.Event()
    nursery.start_soon(serve, k8s_client, stop)
    api_server.create(Website(metadata=ObjectMeta(name="hello", namespace="default")))
    with trio.fail_after(60):
        await wait_for(k8s_client.api(Deployment, namespace="default"), "hello", lambda _: True, missing_ok=True)
    assert (
        to_dict(api_server.get(CustomResourceDefinition, definition.name))["spec"]["versions"]
        == stored["spec"]["versions"]
    )
    stop.set()


async def test_the_operator_waits_for_its_definition(
    api_server: APIServer, k8s_client: Client, nursery: trio.Nursery, autojump_clock: object
) -> None:
    stop = trio.Event()
    nursery.start_soon(serve, k8s_client, stop)
    await trio.sleep(10)
    await install_crds(k8s_client, Website)
    api_server.create(Website(metadata=ObjectMeta(name="hello", namespace="default")))
    with trio.fail_after(60):
        await wait_for(k8s_client.api(Deployment, namespace="default"), "hello", lambda _: True, missing_ok=True)
    stop.set()


def test_the_bindings_give_the_roles_to_the_account_of_the_pods() -> None:
    account = document("ServiceAccount")["metadata"]
    pods = document("Deployment")["spec"]["template"]["spec"]
    assert pods["serviceAccountName"] == account["name"]
    subject = {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
    for binding, role in (("ClusterRoleBinding", "ClusterRole"), ("RoleBinding", "Role")):
        assert document(binding)["subjects"] == [subject]
        assert document(binding)["roleRef"]["kind"] == role
        assert document(binding)["roleRef"]["name"] == document(role)["metadata"]["name"]


def test_the_definition_is_the_one_of_the_class() -> None:
    # If this fails: python -m trioformer.crds website_operator, in examples/.
    (definition,) = crds_of(Website)
    assert document("CustomResourceDefinition") == yaml.safe_load(yaml.safe_dump(to_dict(definition)))


def test_kustomize_takes_every_manifest() -> None:
    kustomization = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())
    assert sorted(kustomization["resources"]) == sorted(f"manifests/{path.name}" for path in MANIFESTS.iterdir())
    (container,) = document("Deployment")["spec"]["template"]["spec"]["containers"]
    (image,) = kustomization["images"]
    assert container["image"] == f"{image['name']}:{image['newTag']}"


async def test_the_manifests_can_be_applied_with_the_library(api_server: APIServer) -> None:
    async with api_server.open_client() as client:
        results = await apply_manifests(client, load_manifests(MANIFESTS), field_manager="deployer")
    assert [each.action for each in results] == ["created"] * 8


def test_the_probes_and_the_monitor_use_the_port_of_the_program() -> None:
    (container,) = document("Deployment")["spec"]["template"]["spec"]["containers"]
    (port,) = container["ports"]
    assert container["args"] == ["--http", f":{port['containerPort']}"]
    probes = {name: each["httpGet"] for name, each in container.items() if name.endswith("Probe")}
    assert probes == {
        "startupProbe": {"path": "/healthz", "port": port["name"]},
        "livenessProbe": {"path": "/healthz", "port": port["name"]},
        "readinessProbe": {"path": "/readyz", "port": port["name"]},
    }
    monitor = yaml.safe_load((DEPLOY / "pod-monitor.yaml").read_text())
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["path"]) == (port["name"], "/metrics")
    labels = document("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_the_program_knows_the_flags_of_the_deployment() -> None:
    (container,) = document("Deployment")["spec"]["template"]["spec"]["containers"]
    program = ROOT / "examples" / Path(yaml.safe_load(dockerfile("ENTRYPOINT")[0])[-1]).name
    code, output, errors = result_here(str(program), *container["args"], "--help")
    assert (code, errors) == (0, [])
    assert any("--http" in line for line in output)


def test_the_image_has_what_the_program_imports_and_what_the_build_reads() -> None:
    copied = [word for line in dockerfile("COPY") for word in line.split()[:-1] if not word.startswith("--from")]
    files = {word for word in copied if word != "/venv"}
    assert [name for name in files if not (ROOT / name).exists()] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"pyproject.toml", "trioformer", project["readme"], *project["license-files"]} <= files
    programs = [ROOT / name for name in files if name.startswith("examples/")]
    code = "\n".join(path.read_text() for path in programs)
    imported = set(re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE))
    beside = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert imported & beside <= {path.stem for path in programs}
    versions = {re.split("[:-]", line)[1] for line in dockerfile("FROM")}
    assert versions <= {c.rpartition(" ")[2] for c in project["classifiers"]}


def test_a_pod_that_stops_has_time_for_the_grace_of_its_controllers() -> None:
    grace = document("Deployment")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert grace > 30 + 5  # shutdown_grace, and what the event recorders get

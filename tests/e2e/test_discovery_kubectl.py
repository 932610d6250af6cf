"""Names of kinds against kubectl's answers, a group that is down, and the beta versions of built-in kinds."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from trioformer import open_client
from trioformer.client import Client
from trioformer.errors import NotFoundError
from trioformer.kubeconfig import load_config
from trioformer.models import ObjectMeta, ResourceInfo, from_dict
from trioformer.models._kinds import builtin_kind, builtin_resources
from trioformer.models.apiextensions_v1 import CustomResourceDefinition
from trioformer.models.apiregistration_v1 import APIService
from trioformer.models.networking_v1 import ServiceCIDR as StableServiceCIDR
from trioformer.models.networking_v1beta1 import ServiceCIDR, ServiceCIDRSpec
from trioformer.testing import ControlPlane

DEFINITIONS: dict[str, dict[str, Any]] = {
    # Kinds that have names in common with built-in ones, and with each other.
    "events.a.example.com": {"plural": "events", "singular": "event", "kind": "Event", "shortNames": ["ev", "deploy"]},
    "deployments.b.example.com": {"plural": "deployments", "singular": "deployment", "kind": "Deployment"},
    "gnus.a.example.com": {"plural": "gnus", "singular": "gnu", "kind": "Gnu", "shortNames": ["gn"]},
    "gnus.b.example.com": {"plural": "gnus", "singular": "gnu", "kind": "Gnu", "shortNames": ["gn"]},
}
NAMES = [
    "ev",
    "events",
    "Event",
    "event.a",
    "events.events.k8s.io",
    "events.v1.a.example.com",
    "deploy",
    "deploy.apps",
    "deployments",
    "deployment.b.example.com",
    "Deployment.v1.apps",
    "gnu",
    "gn",
    "gnus.b",
    "gnus.v2.a.example.com",
    "gnus.v1.b.example.com",
    "pods.v1.",
    "hpa",
    "hpa.autoscaling",
    "lease.coordination",
    "cs",
    "nodes.metrics.k8s.io",
    "deployments.v2.apps",
    "nosuchthing",
]


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with open_client(load_config(kubeconfig=control_plane.kubeconfig)) as client:
        yield client


@asynccontextmanager
async def definitions(client: Client) -> AsyncIterator[None]:
    api = client.api(CustomResourceDefinition)
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v2")]
    try:
        for name, names in DEFINITIONS.items():
            spec = {"group": name.partition(".")[2], "scope": "Cluster", "names": names, "versions": versions}
            await api.create(from_dict(CustomResourceDefinition, {"metadata": {"name": name}, "spec": spec}))
        with trio.fail_after(60):
            for name in DEFINITIONS:
                while True:
                    try:
                        await client.discover(name)  # waits when it has asked often
                        break
                    except NotFoundError:
                        continue
        yield
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 10):
            for name in DEFINITIONS:
                await api.delete(name)


async def kubectl(assets: Path, control_plane: ControlPlane, home: Path, *arguments: str) -> tuple[str, str]:
    command = [str(assets / "kubectl"), f"--kubeconfig={control_plane.kubeconfig}", *arguments]
    environment = {**os.environ, "HOME": str(home)}  # where it keeps what it has discovered
    with trio.fail_after(60):
        done = await trio.run_process(command, env=environment, capture_stdout=True, capture_stderr=True, check=False)
    return done.stdout.decode(), done.stderr.decode()


async def test_names_and_resources_are_those_of_kubectl(
    assets: Path, control_plane: ControlPlane, client: Client, tmp_path: Path
) -> None:
    meant: dict[str, str | None] = {}
    expected: dict[str, str | None] = {}
    async with definitions(client):
        resources = await client.api_resources()
        for name in NAMES:
            _, log = await kubectl(assets, control_plane, tmp_path, "get", name, "-v=6")
            paths = re.findall(r"https://[\w.:]+(/apis?/[\w./-]+)\?limit=", log)
            expected[name] = paths[-1].replace("/namespaces/default", "") if paths else None
            info = resources.find(name)
            meant[name] = info and info.path()
        printed, _ = await kubectl(assets, control_plane, tmp_path, "api-resources", "-o", "wide", "--no-headers")
        resources = await client.api_resources()
    assert meant == expected
    # kubectl loses the version beside a short name.
    assert getattr(resources.find("hpa.v1.autoscaling"), "version", None) == "v1"
    assert sum(path is not None for path in expected.values()) >= 20
    assert {line_of(info) for info in resources} == {" ".join(line.split()) for line in printed.splitlines()}
    assert len(resources) > 60


def line_of(info: ResourceInfo) -> str:
    """A resource as ``kubectl api-resources -o wide`` prints it, with one space between columns."""
    words = [info.plural, ",".join(info.short_names), info.api_version, str(info.namespaced).lower(), info.kind]
    return " ".join(word for word in [*words, ",".join(info.verbs), ",".join(info.categories)] if word)


async def test_a_group_that_is_down_is_reported_and_nothing_else_fails(client: Client) -> None:
    services = client.api(APIService)
    name = "v1.down.example.com"
    spec = {
        "group": "down.example.com",
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 1,
        "service": {"namespace": "default", "name": "nobody"},
    }
    await services.create(from_dict(APIService, {"metadata": {"name": name}, "spec": spec}))
    try:
        with trio.fail_after(60):
            found = await client.api_resources()
            while not found.failures:
                await trio.sleep(0.2)
                found = await client.api_resources()
        assert found.failures == {"down.example.com/v1": "the server of the group does not respond"}
        assert await client.discover("deploy") is builtin_kind("apps/v1", "Deployment")
        with pytest.raises(NotFoundError, match=r"; could not search down\.example\.com/v1"):
            await client.discover("nosuchthing")
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 5):
            await services.delete(name)


async def test_beta_versions_are_served_as_their_classes_say(assets: Path) -> None:
    flags = ["--runtime-config=api/beta=true", "--feature-gates=AllBeta=true"]
    async with (
        ControlPlane(assets=assets, api_server_flags=flags) as control_plane,
        open_client(kubeconfig=control_plane.kubeconfig) as client,
    ):
        beta = builtin_resources(beta=True)[len(builtin_resources()) :]
        assert len(beta) >= 15
        for info in beta:
            kind = builtin_kind(info.api_version, info.kind)
            assert await client.discover(kind) is kind
            assert await client.discover(f"{info.plural}.{info.version}.{info.group}") is kind
            await client.api(kind).list()
        ranges = client.api(ServiceCIDR)
        made = await ranges.create(
            ServiceCIDR(metadata=ObjectMeta(name="more"), spec=ServiceCIDRSpec(cidrs=("10.9.0.0/24",)))
        )
        assert made.api_version == "networking.k8s.io/v1beta1"
        assert (await client.api(StableServiceCIDR).get("more")).spec.cidrs == ("10.9.0.0/24",)
        assert await client.discover("servicecidrs") is StableServiceCIDR

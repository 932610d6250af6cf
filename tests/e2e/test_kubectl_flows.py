"""kubectl prints the same of the embedded server as of kube-apiserver with controllers, but for the listed flows."""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import yaml

from tests.e2e.kubectl_flows import FLOWS, Runner, schedule
from trioformer import open_client
from trioformer.testing import APIServer, ControlPlane, serve_http

EQUAL_AT_LEAST = 97


async def run_real(assets: Path, directory: Path) -> dict[str, str]:
    async with (
        ControlPlane(assets=assets, controller_manager=True, nodes=["node-1"]) as control_plane,
        open_client(kubeconfig=control_plane.kubeconfig) as client,
        trio.open_nursery() as nursery,
    ):
        await nursery.start(schedule, client)
        kubeconfig = yaml.safe_load(await trio.Path(control_plane.kubeconfig).read_text())
        printed = await Runner(client, kubeconfig, directory, assets / "kubectl").run(list(FLOWS.values()))
        nursery.cancel_scope.cancel()
    return printed


async def run_embedded(assets: Path, directory: Path) -> dict[str, str]:
    server = APIServer(controllers=True)
    async with trio.open_nursery() as nursery:
        url = await nursery.start(serve_http, server)
        await nursery.start(server.run)
        kubeconfig = {
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
            "current-context": "c",
        }
        async with server.open_client() as client:
            printed = await Runner(client, kubeconfig, directory, assets / "kubectl").run(list(FLOWS.values()))
        nursery.cancel_scope.cancel()
    return printed


@pytest.fixture(scope="module")
def printed(assets: Path) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """What both servers had kubectl print, by the name of the flow."""
    with tempfile.TemporaryDirectory() as real, tempfile.TemporaryDirectory() as embedded:
        yield trio.run(run_real, assets, Path(real)), trio.run(run_embedded, assets, Path(embedded))


@pytest.mark.parametrize("name", [name for name, flow in FLOWS.items() if flow.differs is None])
def test_a_flow_prints_the_same(printed: tuple[dict[str, str], dict[str, str]], name: str) -> None:
    real, embedded = (each[name].splitlines(keepends=True) for each in printed)
    assert not (difference := "".join(difflib.unified_diff(real, embedded, "kube-apiserver", "embedded"))), difference


def test_the_list_of_differing_flows_is_short_and_true(printed: tuple[dict[str, str], dict[str, str]]) -> None:
    real, embedded = printed
    listed = {name for name, flow in FLOWS.items() if flow.differs is not None}
    assert listed == {name for name in listed if real[name] != embedded[name]}
    assert len(FLOWS) - len(listed) >= EQUAL_AT_LEAST

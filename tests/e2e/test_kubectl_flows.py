"""kubectl prints the same of the embedded server as of kube-apiserver with controllers, but for the listed flows."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest
import trio
import yaml

from tests.e2e.kubectl_flows import FLOWS, Runner, schedule
from trioformer import open_client
from trioformer.testing import APIServer, ControlPlane, serve_http

EQUAL_AT_LEAST = 142


Printed = dict[str, str]


async def run_real(assets: Path, directory: Path, printed: Printed) -> None:
    async with (
        ControlPlane(assets=assets, controller_manager=True, nodes=["node-1"]) as control_plane,
        open_client(kubeconfig=control_plane.kubeconfig) as client,
        trio.open_nursery() as nursery,
    ):
        await nursery.start(schedule, client)
        kubeconfig = yaml.safe_load(await trio.Path(control_plane.kubeconfig).read_text())
        await Runner(client, kubeconfig, directory, assets / "kubectl", printed).run(list(FLOWS.values()))
        nursery.cancel_scope.cancel()


async def run_embedded(assets: Path, directory: Path, printed: Printed) -> None:
    server = APIServer(controllers=True)
    async with trio.open_nursery() as nursery, server.open_client() as client:
        url = await nursery.start(serve_http, server)
        await nursery.start(server.run)
        kubeconfig = {
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
            "current-context": "c",
        }
        await Runner(client, kubeconfig, directory, assets / "kubectl", printed).run(list(FLOWS.values()))
        nursery.cancel_scope.cancel()


@pytest.fixture(scope="module")
def printed(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Printed, Printed]:
    """What both servers had kubectl print, by the name of the flow."""
    found: tuple[Printed, Printed] = {}, {}

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            for function, printed in zip((run_real, run_embedded), found, strict=True):
                nursery.start_soon(function, assets, tmp_path_factory.mktemp("flows"), printed)

    trio.run(run)
    return found


@pytest.mark.parametrize("name", [name for name, flow in FLOWS.items() if flow.differs is None])
def test_a_flow_prints_the_same(printed: tuple[Printed, Printed], name: str) -> None:
    real, embedded = (each[name].splitlines(keepends=True) for each in printed)
    assert not (difference := "".join(difflib.unified_diff(real, embedded, "kube-apiserver", "embedded"))), difference


def test_the_list_of_differing_flows_is_short_and_true(printed: tuple[Printed, Printed]) -> None:
    real, embedded = printed
    listed = {name for name, flow in FLOWS.items() if flow.differs is not None}
    assert listed == {name for name in listed if real[name] != embedded[name]}
    assert len(FLOWS) - len(listed) >= EQUAL_AT_LEAST

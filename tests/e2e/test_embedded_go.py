"""Typed clients of client-go and a manager of controller-runtime, with their defaults, against the embedded API server.

``embedded_go`` has the checks, which kube-apiserver passes, too, except those that need faults.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from tests.e2e.embedded_cluster import kubeconfig_of, results_of_checks
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, ControlPlane

GROUPS: Final = ("kinds", "special", "informers", "leader", "manager")
ENCODINGS: Final = ("default", "protobuf", "json")
SECONDS: Final = 60


def reset(server: APIServer) -> None:
    """Break all watches."""
    assert server.disconnect_watches(how="reset")


def compact(server: APIServer) -> None:
    """Break all watches, and compact what they have missed."""
    reset(server)
    namespace = server.list(Pod, label_selector="number")[0].namespace
    assert namespace is not None
    for kind in ("pods", "deployments.apps"):
        server.patch(kind, "first", {"metadata": {"labels": {"number": "7"}}}, namespace=namespace)
        obj: dict[str, Any] = dict(server.get(kind, "third", namespace=namespace))
        server.delete(kind, "third", namespace=namespace)
        labels = {"number": "0"}
        server.create({**obj, "metadata": {"name": "fourth", "namespace": namespace, "labels": labels}})
    server.compact()


def forget(server: APIServer) -> None:
    """Compact all history."""
    server.compact()


FAULTS: Final[dict[str, Callable[[APIServer], None]]] = {"reset": reset, "compact": compact, "forget": forget}


async def results_of(
    assets: Path, kubeconfig: Path, *arguments: str, server: APIServer | None = None
) -> dict[str, str]:
    """Run the checks; returns the error of each, which is empty if it has passed."""
    command = [str(assets / "embedded-go"), "-kubeconfig", str(kubeconfig), *arguments]

    async def disturb(fault: str) -> None:
        assert server is not None
        FAULTS[fault](server)

    return await results_of_checks(functools.partial(trio.run_process, command), SECONDS, disturb)


def has_watch_list(server: APIServer) -> bool:
    """Whether an informer has listed pods by a watch, as client-go does by default."""
    return any(
        request.resource == "pods"
        and request.query.get("sendInitialEvents") == "true"
        and "labelSelector" not in request.query
        for request in server.requests
    )


def check(results: dict[str, str]) -> None:
    failed = [f"{name}: {error[:1_000]}" for name, error in results.items() if error]
    assert not failed, "\n".join(failed)
    assert len(results) > 190


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_all_checks_pass(encoding: str, assets: Path, tmp_path: Path) -> None:
    server = APIServer()
    async with kubeconfig_of(server, tmp_path) as kubeconfig:
        groups = GROUPS if encoding == "default" else ("kinds", "special", "informers")
        results = await results_of(assets, kubeconfig, "-encoding", encoding, "-faults", *groups, server=server)
    check(results)
    assert has_watch_list(server)


async def test_the_checks_pass_on_kube_apiserver(assets: Path, control_plane: ControlPlane) -> None:
    results = await results_of(assets, control_plane.kubeconfig, *GROUPS)
    check(results)

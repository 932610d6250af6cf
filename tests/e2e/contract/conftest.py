"""Fixtures of the contract tests: one test body, on the embedded server and on a real kube-apiserver.

A test that takes ``server_client`` runs twice, as ``test_…[embedded]`` and ``test_…[real]``; it must not ask which one
it has.
An ordinary run (``pytest``) collects only the embedded half; one that names the end-to-end tests collects both.

==================  ===================================================================================================
``server_client``   a client of an API server; nothing but the API server runs
``cluster_client``  a client of a cluster: the garbage collector runs, and on the real one all other controllers
``run_in_cluster``  a function that runs an async function in a cluster with controllers and pods
``guarded_server``  a function that opens a client of an API server with RBAC, with a token or as an administrator
``namespace``       the name of a new namespace, for ``server_client``
``both_clients``    an ``(embedded, real)`` pair, for tests that compare two servers; only in runs with a real one
==================  ===================================================================================================
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Final, TypeAlias, TypeVar

import attrs
import pytest
import trio
from trio.abc import Clock
from trio.testing import MockClock

from tests.e2e.contract.controller_flows import FAILING
from tests.e2e.contract.releases import differs
from tests.e2e.contract.webhook_servers import Installer, WebhookServer, open_webhook_server
from tests.e2e.workloads import make_namespace
from tests.support.end_to_end import is_end_to_end
from trioformer import open_client
from trioformer.client import Client
from trioformer.kubeconfig import load_config
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, ControlPlane, ScriptedPod, run_pod

T = TypeVar("T")
Connected: TypeAlias = Callable[[], AbstractAsyncContextManager[Client]]

OpenClient: TypeAlias = Callable[[str | None], AbstractAsyncContextManager[Client]]

_SERVERS: Final = ("server", "guarded_server", "cluster_server", "run_in_cluster")
"""The fixtures that have one value for each server."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    kinds = ["embedded", "real"] if is_end_to_end(metafunc.config) else ["embedded"]
    for fixture in _SERVERS:
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, kinds, indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if not differs(item.name)]
    if not is_end_to_end(config):
        # Nothing is skipped in an ordinary run: what needs a real server is not part of it.
        items[:] = [item for item in items if "real_server" not in getattr(item, "fixturenames", ())]


@asynccontextmanager
async def _embedded(server: APIServer) -> AsyncIterator[Client]:
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with server.open_client() as client:
            yield client
        nursery.cancel_scope.cancel()


def _connected(request: pytest.FixtureRequest, control_plane: str, *, garbage_collector: bool = False) -> Connected:
    """Return how to connect to the server of a test, which runs it if it is embedded."""
    if request.param == "embedded":
        return lambda: _embedded(APIServer(garbage_collector=garbage_collector))
    real: ControlPlane = request.getfixturevalue(control_plane)
    return lambda: open_client(kubeconfig=real.kubeconfig)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Connected:
    """Connect to an API server; an embedded one is new each time."""
    return _connected(request, "control_plane")


@pytest.fixture
def guarded_server(request: pytest.FixtureRequest) -> OpenClient:
    """Open clients of an API server that enforces roles, which an embedded one does while the first client is open."""
    if request.param == "embedded":
        server = APIServer(roles=())

        def connect(token: str) -> AbstractAsyncContextManager[Client]:
            return open_client(attrs.evolve(server.config, token=token), http_transport=server.http_transport())

        return lambda token: _embedded(server) if token is None else connect(token)
    real: ControlPlane = request.getfixturevalue("control_plane")
    config = load_config(kubeconfig=real.kubeconfig)
    anybody = attrs.evolve(config, client_certificate_data=None, client_key_data=None)
    return lambda token: open_client(config if token is None else attrs.evolve(anybody, token=token))


@pytest.fixture
def cluster_server(request: pytest.FixtureRequest) -> Connected:
    """Connect to a cluster."""
    return _connected(request, "cluster", garbage_collector=True)


def _run_as_kwok(pod: Pod, script: ScriptedPod) -> None:
    if FAILING in pod.metadata.labels:
        script.start()
        script.end(exit_code=1)
    else:
        run_pod(pod, script)


@pytest.fixture
def run_in_cluster(request: pytest.FixtureRequest) -> Callable[[Callable[[Client], Awaitable[T]]], T]:
    """Run an async function in a cluster with controllers: an embedded one in virtual time, or a real one."""
    if request.param == "embedded":
        connect = lambda: _embedded(APIServer(controllers=True, run_pod=_run_as_kwok))  # noqa: E731  # as below
        clock: Clock | None = MockClock(autojump_threshold=0)
    else:
        real: ControlPlane = request.getfixturevalue("cluster")
        connect, clock = lambda: open_client(kubeconfig=real.kubeconfig), None

    async def main(function: Callable[[Client], Awaitable[T]]) -> T:
        async with connect() as client:
            return await function(client)

    return lambda function: trio.run(main, function, clock=clock)


@pytest.fixture
def real_server(control_plane: ControlPlane) -> Connected:
    """Connect to a real API server; the tests that need one are not in an ordinary run."""
    return lambda: open_client(kubeconfig=control_plane.kubeconfig)


@pytest.fixture
async def server_client(server: Connected) -> AsyncIterator[Client]:
    """A client of an API server, embedded or real."""
    async with server() as client:
        yield client


@pytest.fixture
async def cluster_client(cluster_server: Connected) -> AsyncIterator[Client]:
    """A client of a cluster, embedded or real."""
    async with cluster_server() as client:
        yield client


@pytest.fixture
async def both_clients(real_server: Connected) -> AsyncIterator[tuple[Client, Client]]:
    """A client of a new embedded server, and one of a real server."""
    async with AsyncExitStack() as stack:
        embedded = await stack.enter_async_context(_embedded(APIServer()))
        yield embedded, await stack.enter_async_context(real_server())


@pytest.fixture
async def namespace(server_client: Client) -> str:
    """The name of a new namespace."""
    return await make_namespace(server_client, "contract")


@pytest.fixture
async def webhook_server() -> AsyncIterator[WebhookServer]:
    """A server of webhooks on loopback."""
    async with open_webhook_server() as server:
        yield server


@pytest.fixture
async def installer(server_client: Client, webhook_server: WebhookServer, namespace: str) -> AsyncIterator[Installer]:
    """Installs webhooks for the objects in the namespace."""
    made = Installer(server_client, webhook_server, namespace)
    yield made
    await made.remove()

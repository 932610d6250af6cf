"""kubectl and trioformer with the same configuration, through the same proxies, to a real kube-apiserver."""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
import trio
import trustme
import yaml

from tests.support.proxies import SCHEMES, Proxy, Scheme, proxy
from trioformer.client import ClientOptions, open_client
from trioformer.errors import ConnectionFailedError, ProxyError
from trioformer.models.core_v1 import Namespace
from trioformer.testing.control_plane._control_plane import ControlPlane

CA = trustme.CA()
USER = ("anna", "p@ss:w/rd")


@attrs.define(eq=False)
class Both:
    """kubectl and trioformer, which have the same configuration."""

    kubectl: Path
    control_plane: ControlPlane
    directory: Path
    proxy: Proxy
    environment: Mapping[str, str]

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    def write(self, proxy_url: str | None, *, host: str = "127.0.0.1") -> None:
        """Write a kubeconfig for a server of this name; the certificate is valid for 127.0.0.1."""
        config = yaml.safe_load(self.control_plane.kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        authorities = base64.b64decode(cluster["certificate-authority-data"]) + CA.cert_pem.bytes()
        cluster["certificate-authority-data"] = base64.b64encode(authorities).decode()
        cluster["tls-server-name"] = "127.0.0.1"
        cluster["server"] = cluster["server"].replace("127.0.0.1", host)
        if proxy_url is not None:
            cluster["proxy-url"] = proxy_url
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(yaml.safe_dump(config))

    async def kubectl_connects(self) -> bool:
        environment = {"HOME": str(self.directory), "KUBECONFIG": str(self.kubeconfig), **self.environment}
        command = [str(self.kubectl), "get", "namespace", "default", "-o", "name", "--request-timeout=10s"]
        done = await trio.run_process(command, env=environment, capture_stdout=True, capture_stderr=True, check=False)
        return done.stdout == b"namespace/default\n"

    async def trioformer_connects(self, monkeypatch: pytest.MonkeyPatch) -> ConnectionFailedError | None:
        with monkeypatch.context() as patched:
            for name, value in self.environment.items():
                patched.setenv(name, value)
            async with open_client(kubeconfig=self.kubeconfig, options=ClientOptions(retries=0)) as client:
                try:
                    await client.api(Namespace).get("default")
                except ConnectionFailedError as exc:
                    return exc
        return None


@asynccontextmanager
async def both(
    scheme: Scheme, assets: Path, control_plane: ControlPlane, directory: Path, environment: Mapping[str, str]
) -> AsyncIterator[Both]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    CA.issue_cert("127.0.0.1").configure_cert(context)
    async with proxy(scheme, tls=context, user=USER, hosts={"api.test": "127.0.0.1"}) as running:
        filled = {name: value.format(url=running.url, bare=running.bare_url) for name, value in environment.items()}
        yield Both(assets / "kubectl", control_plane, directory, running, filled)


every_scheme = pytest.mark.parametrize("scheme", SCHEMES)


@every_scheme
async def test_both_connect_through_the_proxy_of_a_kubeconfig(
    scheme: Scheme, assets: Path, control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with both(scheme, assets, control_plane, tmp_path, {"NO_PROXY": "*"}) as clients:
        clients.write(clients.proxy.url)
        assert await clients.kubectl_connects()
        tunnels = len(clients.proxy.targets)
        assert tunnels
        assert await clients.trioformer_connects(monkeypatch) is None
        assert len(clients.proxy.targets) > tunnels
        assert len(set(clients.proxy.targets)) == 1


@every_scheme
async def test_neither_connects_with_other_credentials_for_the_proxy(
    scheme: Scheme, assets: Path, control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with both(scheme, assets, control_plane, tmp_path, {}) as clients:
        clients.write(clients.proxy.bare_url)
        assert not await clients.kubectl_connects()
        error = await clients.trioformer_connects(monkeypatch)
        assert isinstance(error, ProxyError)
        assert "(proxy-url) requires a user and a password" in str(error)


@every_scheme
@pytest.mark.parametrize(
    ("environment", "connects"),
    [
        ({"HTTPS_PROXY": "{url}"}, True),
        ({"https_proxy": "{url}", "NO_PROXY": "other.test,10.0.0.0/8,.api.test,api.test:1"}, True),
        ({"HTTPS_PROXY": "{url}", "NO_PROXY": "api.test"}, False),
        ({"HTTPS_PROXY": "{url}", "no_proxy": ".test"}, False),
        ({"HTTP_PROXY": "{url}", "ALL_PROXY": "{url}"}, False),
        ({"HTTPS_PROXY": "{bare}", "https_proxy": "{url}"}, False),
    ],
)
async def test_both_use_the_proxy_of_the_environment_or_neither_does(
    scheme: Scheme,
    environment: dict[str, str],
    connects: bool,
    assets: Path,
    control_plane: ControlPlane,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with both(scheme, assets, control_plane, tmp_path, environment) as clients:
        clients.write(None, host="api.test")  # a name that only the proxy knows
        assert await clients.kubectl_connects() is connects
        assert (await clients.trioformer_connects(monkeypatch) is None) is connects

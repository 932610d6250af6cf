"""Credential plugins under our client and under kubectl: what each gives them, and makes of what they print."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
import trio
import trustme
import yaml

from tests.support.plugins import V1, V1BETA1, Plugin, credential
from tests.support.scripted_http import Loopback, complete
from trioformer import open_client
from trioformer.client import ClientOptions
from trioformer.errors import ExecPluginError
from trioformer.models import ObjectMeta
from trioformer.models.authentication_v1 import TokenRequest, TokenRequestSpec
from trioformer.models.core_v1 import ConfigMap, ServiceAccount
from trioformer.testing import ControlPlane

CA = trustme.CA()
CLIENT = CA.issue_cert("client@test")
CHAIN = b"".join(blob.bytes() for blob in CLIENT.cert_chain_pems).decode()
KEY = CLIENT.private_key_pem.bytes().decode()
EXTENSION = "client.authentication.k8s.io/exec"
REFUSED = "refused"
AT_ONCE = 2


@attrs.frozen
class Clients:
    """Sends a request as kubectl and as our client, with the same kubeconfig, to a server that sees them."""

    kubectl: Path
    directory: Path
    server: Loopback
    limit: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(AT_ONCE))

    def kubeconfig(self, name: str, user: object, **cluster: object) -> Path:
        """Write one."""
        authority = base64.b64encode(CA.cert_pem.bytes()).decode()
        fields = {"server": self.server.url, "certificate-authority-data": authority, **cluster}
        document = {
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "clusters": [{"name": "x", "cluster": {key: each for key, each in fields.items() if each is not None}}],
            "users": [{"name": "x", "user": user}],
        }
        path = self.directory / name
        path.write_text(yaml.safe_dump(document))
        path.chmod(0o600)
        return path

    async def kubectl_sends(self, kubeconfig: Path) -> str:
        """Return the header ``Authorization`` of a request of kubectl's, or that it sends none."""
        command = [str(self.kubectl), f"--kubeconfig={kubeconfig}", "get", "--raw=/x", "--request-timeout=10s"]
        async with self.limit:
            self.server.heads.clear()
            environment = {"HOME": str(self.directory), "PATH": "/usr/bin:/bin"}
            await trio.run_process(command, env=environment, capture_stdout=True, capture_stderr=True, check=False)
            return self._received()

    async def we_send(self, kubeconfig: Path) -> str:
        """Return the same of a request of ours."""
        self.server.heads.clear()
        async with open_client(kubeconfig=kubeconfig, options=ClientOptions(retries=0)) as client:
            try:
                await client.api(ConfigMap, namespace="default").get("x")
            except ExecPluginError as exc:
                assert "s3cr3t" not in str(exc)  # noqa: PT017  # the others are about the response
            except Exception:  # noqa: BLE001
                assert self.server.heads
        return self._received()

    def _received(self) -> str:
        if not self.server.heads:
            return REFUSED
        lines = self.server.heads[0].decode().split("\r\n")
        return next((line.partition(": ")[2] for line in lines if line.lower().startswith("authorization:")), "")


@pytest.fixture
async def clients(assets: Path, tmp_path: Path) -> AsyncIterator[Clients]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    CA.issue_cert("127.0.0.1", "other.test").configure_cert(context)
    server = Loopback(lambda _: [complete(b"{}")], tls=context)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        yield Clients(assets / "kubectl", tmp_path, server)
        nursery.cancel_scope.cancel()


def printed(**status: Any) -> str:
    return credential(**status)


OUTPUTS: Final[Mapping[str, str]] = {
    "token": printed(token="one"),
    "fraction of a second": printed(token="one", expirationTimestamp="2999-01-01T00:00:00.123456789+02:00"),
    "empty time": printed(token="one", expirationTimestamp=""),
    "time without zone": printed(token="one", expirationTimestamp="2999-01-01T00:00:00"),
    "lower-case time": printed(token="one", expirationTimestamp="2999-01-01t00:00:00z"),
    "number as time": printed(token="one", expirationTimestamp=32472144000),
    "certificate and key": printed(clientCertificateData=CHAIN, clientKeyData=KEY),
    "certificate only": printed(clientCertificateData=CHAIN),
    "bad certificate": printed(token="one", clientCertificateData="x", clientKeyData=KEY),
    "empty token": printed(token=""),
    "empty token beside certificate": printed(token="", clientCertificateData=CHAIN, clientKeyData=KEY),
    "number as token": printed(token=1),
    "list as token": printed(token=["s3cr3t"]),
    "line end in token": printed(token="s3cr3t\n"),
    "no status": json.dumps({"apiVersion": V1, "kind": "ExecCredential"}),
    "empty status": printed(),
    "nothing": "",
    "line before it": "Logging in\n" + printed(token="one"),
    "two documents": printed(token="one") + printed(token="two"),
    "two tokens": printed(token="one").replace('{"token"', '{"token": "zero", "token"'),
    "other case": printed(token="one").replace("token", "Token"),
    "other version": credential(api_version=V1BETA1, token="one"),
    "unknown version": credential(api_version="client.authentication.k8s.io/v2", token="one"),
    "no version": json.dumps({"kind": "ExecCredential", "status": {"token": "one"}}),
    "other kind": json.dumps({"apiVersion": V1, "kind": "ExecCredentials", "status": {"token": "one"}}),
    "empty kind": json.dumps({"apiVersion": V1, "kind": "", "status": {"token": "one"}}),
    "with spec": printed(token="one").replace('"kind"', '"spec": {"interactive": true}, "kind"'),
    "wrong spec": printed(token="one").replace('"kind"', '"spec": 1, "kind"'),
    "brackets": '{"x": ' + "[" * 20_000,
}
DIFFERS: Final[Mapping[str, str]] = {
    "expired": printed(token="one", expirationTimestamp="2006-01-02T15:04:05Z"),
    "YAML": f"apiVersion: {V1}\nkind: ExecCredential\nstatus:\n  token: one\n",
    "space in token": printed(token="one two"),
    "letter in token": printed(token="oné"),
    "surrogate": printed(token="one").replace("one", "\\ud800"),
}
"""What kubectl uses and we refuse: docs/design/deviations.rst."""


@pytest.mark.parametrize("name", [*OUTPUTS, *DIFFERS])
async def test_what_a_plugin_prints_is_used_as_kubectl_uses_it(clients: Clients, tmp_path: Path, name: str) -> None:
    plugin = Plugin(tmp_path / "plugin")
    plugin.prints({**OUTPUTS, **DIFFERS}[name])
    kubeconfig = clients.kubeconfig("config", plugin.user())
    theirs = await clients.kubectl_sends(kubeconfig)
    ours = await clients.we_send(kubeconfig)
    if name in DIFFERS:
        assert (theirs != REFUSED, ours) == (True, REFUSED)
    else:
        assert ours == theirs
    assert plugin.runs >= 2


CLUSTERS: Final[Mapping[str, dict[str, object]]] = {
    "plain": {},
    "insecure": {"insecure-skip-tls-verify": True, "certificate-authority-data": None},
    "name": {"tls-server-name": "other.test"},
    "no compression": {"disable-compression": True},
    "file": {"certificate-authority": "ca.crt", "certificate-authority-data": None},
    "extension": {"extensions": [{"name": EXTENSION, "extension": {"audience": "é", "size": [1, 2.5, True, None]}}]},
    "other extension": {"extensions": [{"name": "x", "extension": {"a": 1}}]},
    "text as extension": {"extensions": [{"name": EXTENSION, "extension": "a text"}]},
}


@pytest.mark.parametrize(
    ("cluster", "version", "mode"),
    [(None, V1, "Never"), (None, V1BETA1, "IfAvailable"), *((name, V1BETA1, "Never") for name in CLUSTERS)],
)
async def test_a_plugin_is_given_what_kubectl_gives_it(
    clients: Clients, tmp_path: Path, cluster: str | None, version: str, mode: str
) -> None:
    (tmp_path / "ca.crt").write_bytes(CA.cert_pem.bytes())
    plugin = Plugin(tmp_path / "plugin")
    plugin.prints(credential(api_version=version, token="one"))
    user = plugin.user(apiVersion=version, provideClusterInfo=cluster is not None, interactiveMode=mode)
    kubeconfig = clients.kubeconfig("config", user, **CLUSTERS[cluster or "plain"])
    assert await clients.kubectl_sends(kubeconfig) == "Bearer one"
    theirs = await trio.Path(plugin.directory / "info").read_text()
    assert await clients.we_send(kubeconfig) == "Bearer one"
    assert json.loads(await trio.Path(plugin.directory / "info").read_text()) == json.loads(theirs)


COMMANDS: Final = ["{directory}/plugin", "./bin/plugin", "bin/plugin", "plugin", "../{parent}/bin/plugin"]


@pytest.mark.parametrize("command", COMMANDS)
async def test_commands_are_found_where_kubectl_finds_them(
    clients: Clients, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = Plugin(tmp_path / "bin")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    name = command.format(directory=plugin.directory, parent=tmp_path.name)
    kubeconfig = clients.kubeconfig("config", plugin.user(command=name))
    assert await clients.we_send(kubeconfig) == await clients.kubectl_sends(kubeconfig)


# --- with kube-apiserver ----------------------------------------------------------------------------------------------


@asynccontextmanager
async def client_with(control_plane: ControlPlane, plugin: Plugin, directory: Path) -> AsyncIterator[Any]:
    document = yaml.safe_load(control_plane.kubeconfig.read_text())
    document["users"][0]["user"] = plugin.user()
    path = directory / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    path.chmod(0o600)
    async with open_client(kubeconfig=path) as client:
        yield client


async def test_a_plugin_with_tokens_of_a_service_account(control_plane: ControlPlane, tmp_path: Path) -> None:
    plugin = Plugin(tmp_path / "plugin")
    async with open_client(kubeconfig=control_plane.kubeconfig) as admin:
        accounts = admin.api(ServiceAccount, namespace="default")
        request = TokenRequest(spec=TokenRequestSpec(audiences=[], expiration_seconds=600))
        await accounts.create(ServiceAccount(metadata=ObjectMeta(name="exec")))
        tokens = [await accounts.create_subresource("exec", "token", request) for _ in range(2)]
        first, second = [each.status.token for each in tokens]
    async with client_with(control_plane, plugin, tmp_path) as client:
        plugin.prints(credential(token=first))
        with pytest.raises(Exception, match="system:serviceaccount:default:exec"):
            await client.api(ConfigMap, namespace="default").list()  # who it is, in the error of RBAC
        assert plugin.runs == 1
    plugin.prints(credential(token="rejected"))
    async with client_with(control_plane, plugin, tmp_path) as client:
        with pytest.raises(Exception, match="HTTP 401"):
            await client.api(ConfigMap, namespace="default").list()
        plugin.prints(credential(token=second))
        with pytest.raises(Exception, match="system:serviceaccount:default:exec"):
            await client.api(ConfigMap, namespace="default").list()


async def test_a_plugin_with_a_client_certificate(control_plane: ControlPlane, tmp_path: Path) -> None:
    user = yaml.safe_load(control_plane.kubeconfig.read_text())["users"][0]["user"]
    chain, key = (base64.b64decode(user[f"client-{each}-data"]).decode() for each in ("certificate", "key"))
    plugin = Plugin(tmp_path / "plugin")
    plugin.prints(credential(clientCertificateData=chain, clientKeyData=key))
    async with client_with(control_plane, plugin, tmp_path) as client:
        assert await client.api(ConfigMap, namespace="kube-system").list() is not None
    assert plugin.runs == 1

"""Users of a control plane, each with another kind of credential that can be rotated while it is used.

What a rotation replaces becomes invalid: certificates expire, tokens are bound to a Secret that is deleted, and a
server's certificate is replaced by one of an authority that clients are not to trust before.  So whoever still uses
the previous one fails.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import ssl
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs
import trio
import trustme
import yaml

from trioformer import Client, ObjectMeta
from trioformer.models import from_dict
from trioformer.models.authentication_v1 import (
    BoundObjectReference,
    SelfSubjectReview,
    TokenRequest,
    TokenRequestSpec,
    UserInfo,
)
from trioformer.models.core_v1 import Namespace, Secret, ServiceAccount
from trioformer.models.rbac_v1 import ClusterRoleBinding

SERVER_NAME = "rotated.test"
"""The name by which clients know the API server; it has a certificate of its own for it (SNI)."""
GROUP = "acceptance"
LONG = timedelta(hours=1)
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
numbers = itertools.count()


async def whoami(client: Client) -> UserInfo:
    """Ask the server for the user of a client's requests."""
    review = await client.api(SelfSubjectReview).create(SelfSubjectReview())
    return review.status.user_info


def credential_id(user: UserInfo) -> str:
    """What the server names the credential of a request: the hash of a certificate, or the id of a token."""
    return "".join(user.extra.get(CREDENTIAL_ID, ()))


def write_at_once(path: Path, content: bytes) -> None:
    part = path.with_name(path.name + ".part")
    part.touch(mode=0o600)
    part.write_bytes(content)
    os.replace(part, path)


# --- the server -------------------------------------------------------------------------------------------------------


@attrs.define(eq=False)
class Authorities:
    """The authorities of clients and of the server, and the files of the server's certificate."""

    directory: Path
    clients: trustme.CA = attrs.field(factory=trustme.CA)
    server: trustme.CA = attrs.field(factory=trustme.CA)

    def __attrs_post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.replace_server_certificate(self.server)

    @property
    def flag(self) -> str:
        """The flag for kube-apiserver, which notices when the files change."""
        return f"--tls-sni-cert-key={self.directory / 'server.crt'},{self.directory / 'server.key'}:{SERVER_NAME}"

    def replace_server_certificate(self, authority: trustme.CA) -> None:
        """Let the API server have a certificate of this authority, when it notices."""
        self.server = authority
        issued = authority.issue_cert(SERVER_NAME)
        write_at_once(self.directory / "server.key", issued.private_key_pem.bytes())
        write_at_once(self.directory / "server.crt", issued.cert_chain_pems[0].bytes())

    async def wait_until_served(self, url: str) -> None:
        """Wait until the API server has the certificate that was replaced last."""
        context = ssl.create_default_context()
        self.server.configure_trust(context)
        with trio.fail_after(60):
            while not await self._is_served(url, context):  # noqa: ASYNC110  # another process, which says nothing
                await trio.sleep(0.05)

    @staticmethod
    async def _is_served(url: str, context: ssl.SSLContext) -> bool:
        tcp = await trio.open_tcp_stream("127.0.0.1", int(url.rpartition(":")[2]))
        async with trio.SSLStream(tcp, context, server_hostname=SERVER_NAME, https_compatible=True) as stream:
            try:
                await stream.do_handshake()
            except trio.BrokenResourceError:
                return False
        return True

    def proxy_context(self) -> ssl.SSLContext:
        """Return the server context of an https proxy."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # With the name of the API server too: a kubeconfig's tls-server-name may concern both.
        self.server.issue_cert("127.0.0.1", SERVER_NAME).configure_cert(context)
        return context


# --- users ------------------------------------------------------------------------------------------------------------


@attrs.define(eq=False)
class User(ABC):
    """A user with a kubeconfig in a directory of its own."""

    directory: Path
    authorities: Authorities
    administrator: Client
    url: str
    namespace: str
    used: list[str] = attrs.field(factory=list)
    """The ids of its credentials, in order; empty when it is not a credential of the user that is rotated."""

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that the server knows it by."""

    @abstractmethod
    def user(self) -> Mapping[str, object]:
        """Return its entry in a kubeconfig."""

    @abstractmethod
    async def rotate(self, lifetime: timedelta = LONG) -> None:
        """Replace its credential by one that is valid for so long, unless it is rotated earlier."""

    async def begin(self, lifetime: timedelta = LONG, *, proxy: str | None = None, **impersonated: object) -> None:
        """Get its first credential, and write its kubeconfig."""
        self.directory.mkdir(parents=True)
        await self.prepare()
        await self.rotate(lifetime)
        cluster = {"server": self.url, "tls-server-name": SERVER_NAME, **self.authority()}
        if proxy is not None:
            cluster["proxy-url"] = proxy
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "it", "user": {**self.user(), **impersonated}}],
        }
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(yaml.safe_dump(content))

    async def prepare(self) -> None:  # noqa: B027  # not every user needs anything
        """Create what its credentials need."""

    def authority(self) -> Mapping[str, str]:
        """Return what its cluster's entry in a kubeconfig says of the authority."""
        encoded = base64.b64encode(self.authorities.server.cert_pem.bytes()).decode()
        return {"certificate-authority-data": encoded}


class CertificateUser(User):
    """Has a client certificate and a key in files; the previous certificate expires."""

    @property
    def name(self) -> str:
        return "certificate-user"

    @property
    def files(self) -> tuple[Path, Path]:
        return self.directory / "client.crt", self.directory / "client.key"

    def user(self) -> Mapping[str, object]:
        certificate, key = self.files
        return {"client-certificate": str(certificate), "client-key": str(key)}

    async def rotate(self, lifetime: timedelta = LONG) -> None:
        certificate, key = issue(self.authorities.clients, self.name, lifetime)
        self.used.append(certificate_id(certificate))
        if len(self.used) == 1:
            for path, content in zip(self.files, (certificate, key), strict=True):
                write_at_once(path, content)
            return
        # In place and in pieces, as cp does: first half a key, then a key without its certificate.
        for path, content in ((self.files[1], key), (self.files[0], certificate)):
            with path.open("wb") as file:
                for piece in (content[:100], content[100:]):
                    file.write(piece)
                    file.flush()
                    await trio.sleep(0.1)


class AuthorityUser(CertificateUser):
    """Has a bundle of authorities in a file; the previous authority is taken away."""

    @property
    def name(self) -> str:
        return "authority-user"

    @property
    def bundle(self) -> Path:
        return self.directory / "authorities.crt"

    def authority(self) -> Mapping[str, str]:
        return {"certificate-authority": str(self.bundle)}

    async def prepare(self) -> None:
        await super().rotate()
        self.used.clear()
        write_at_once(self.bundle, self.authorities.server.cert_pem.bytes())

    async def rotate(self, lifetime: timedelta = LONG) -> None:
        """Trust the next authority, have the server use it, and trust the previous one no longer."""
        if not self.kubeconfig.exists():
            return
        previous, authority = self.authorities.server, trustme.CA()
        write_at_once(self.bundle, previous.cert_pem.bytes() + authority.cert_pem.bytes())
        await trio.sleep(SETTLED)
        self.authorities.replace_server_certificate(authority)
        await self.authorities.wait_until_served(self.url)
        write_at_once(self.bundle, authority.cert_pem.bytes())


SETTLED = 1.5
"""Seconds for which both authorities are trusted before the server changes: clients look at files each second."""


class TokenFileUser(User):
    """A service account with a token in a file, as the kubelet writes it; the previous token is revoked."""

    @property
    def name(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{self.account}"

    @property
    def account(self) -> str:
        return self.directory.name

    def user(self) -> Mapping[str, object]:
        return {"tokenFile": str(self.directory / "token")}

    async def prepare(self) -> None:
        await self.administrator.api(ServiceAccount, namespace=self.namespace).create(
            ServiceAccount(metadata=ObjectMeta(name=self.account))
        )

    async def rotate(self, lifetime: timedelta = LONG) -> None:
        token = await self.new_token()
        number = len(self.used)
        volume = self.directory / f"..{number}"
        volume.mkdir()
        (volume / "token").touch(mode=0o600)
        (volume / "token").write_text(token)
        # The kubelet's AtomicWriter: one rename of the link ..data changes all files of a volume.
        link = self.directory / "..data_tmp"
        link.symlink_to(volume.name)
        os.replace(link, self.directory / "..data")
        if number == 1:
            (self.directory / "token").symlink_to("..data/token")
        await self.revoke_previous()

    async def new_token(self) -> str:
        """Request a token that is bound to a Secret."""
        secrets = self.administrator.api(Secret, namespace=self.namespace)
        made = await secrets.create(Secret(metadata=ObjectMeta(name=f"{self.account}-{len(self.used)}")))
        bound = BoundObjectReference(api_version="v1", kind="Secret", name=made.name, uid=made.uid)
        accounts = self.administrator.api(ServiceAccount, namespace=self.namespace)
        request = TokenRequest(spec=TokenRequestSpec(bound_object_ref=bound, expiration_seconds=3600))
        token = (await accounts.create_subresource(self.account, "token", request)).status.token
        self.used.append(f"JTI={claims_of(token)['jti']}")
        return token

    async def revoke_previous(self) -> None:
        """Delete the Secret of the token before the last one; the server rejects it within ten seconds."""
        if len(self.used) > 1:
            secrets = self.administrator.api(Secret, namespace=self.namespace)
            await secrets.delete(f"{self.account}-{len(self.used) - 2}")


PLUGIN = """#!/bin/sh
cd '{directory}'
printf 'run\\n' >> runs
sed "s/EXPIRES/$(date -u -d '+{expires} seconds' +%Y-%m-%dT%H:%M:%SZ)/" credential.json
"""


class PluginUser(TokenFileUser):
    """A service account whose tokens come from an exec plugin, each for two seconds; the previous token is revoked."""

    expires = 2

    @property
    def plugin(self) -> Path:
        return self.directory / "get-token"

    @property
    def runs(self) -> int:
        """How often the plugin was run."""
        return len((self.directory / "runs").read_text().splitlines())

    def user(self) -> Mapping[str, object]:
        return {
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": str(self.plugin),
                "interactiveMode": "Never",
            }
        }

    async def prepare(self) -> None:
        await super().prepare()
        self.write_plugin()

    def write_plugin(self) -> None:
        self.plugin.write_text(PLUGIN.format(directory=self.directory, expires=self.expires))
        self.plugin.chmod(0o700)

    async def rotate(self, lifetime: timedelta = LONG) -> None:
        self.prints({"token": await self.new_token()})
        await self.revoke_previous()

    def prints(self, status: Mapping[str, str]) -> None:
        """Let the plugin print this credential from now on."""
        found = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": {**status, "expirationTimestamp": "EXPIRES"},
        }
        write_at_once(self.directory / "credential.json", json.dumps(found).encode())


class CertificatePluginUser(PluginUser):
    """Has client certificates from an exec plugin; the previous certificate expires."""

    @property
    def name(self) -> str:
        return "plugin-certificate-user"

    async def prepare(self) -> None:
        self.write_plugin()

    async def rotate(self, lifetime: timedelta = LONG) -> None:
        certificate, key = issue(self.authorities.clients, self.name, lifetime)
        self.used.append(certificate_id(certificate))
        self.prints({"clientCertificateData": certificate.decode(), "clientKeyData": key.decode()})


USERS: Sequence[type[User]] = (CertificateUser, TokenFileUser, PluginUser, CertificatePluginUser)


def issue(authority: trustme.CA, name: str, lifetime: timedelta) -> tuple[bytes, bytes]:
    """Issue a client certificate; returns it and its key."""
    issued = authority.issue_cert(
        f"{name}.test", common_name=name, organization_name=GROUP, not_after=datetime.now(UTC) + lifetime
    )
    return issued.cert_chain_pems[0].bytes(), issued.private_key_pem.bytes()


def certificate_id(certificate: bytes) -> str:
    der = ssl.PEM_cert_to_DER_cert(certificate.decode())
    return f"X509SHA256={hashlib.sha256(der).hexdigest()}"


def claims_of(token: str) -> Mapping[str, str]:
    payload = token.split(".")[1]
    claims: Mapping[str, str] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return claims


async def make_namespace_of_users(administrator: Client) -> str:
    """Create a namespace whose service accounts may do everything, as may the users with certificates."""
    namespace = f"users-{os.getpid()}-{next(numbers)}"
    await administrator.api(Namespace).create(Namespace(metadata=ObjectMeta(name=namespace)))
    groups = (GROUP, f"system:serviceaccounts:{namespace}")
    binding = {
        "metadata": {"name": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": each} for each in groups],
    }
    await administrator.api(ClusterRoleBinding).create(from_dict(ClusterRoleBinding, binding))
    return namespace

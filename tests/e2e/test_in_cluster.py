"""``open_client()`` as in a pod: the files of a service account, with a projected token that is rotated."""

from __future__ import annotations

import base64
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import attrs
import pytest
import trio
import yaml

from tests.e2e.workloads import make_namespace
from trioformer import Client, ClusterConfig, load_config, open_client
from trioformer.errors import ForbiddenError, UnauthorizedError
from trioformer.models import ObjectMeta
from trioformer.models.authentication_v1 import (
    BoundObjectReference,
    SelfSubjectReview,
    TokenRequest,
    TokenRequestSpec,
)
from trioformer.models.core_v1 import ConfigMap, Secret, ServiceAccount
from trioformer.models.rbac_v1 import PolicyRule, Role, RoleBinding, RoleRef, Subject
from trioformer.testing import ControlPlane

ROBOT = "robot"
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"


@attrs.frozen
class Volume:
    """A projected volume: files that are links through ``..data`` to a folder, which is replaced as a whole."""

    directory: Path

    def write(self, files: dict[str, bytes], folder: str) -> None:
        """Replace the content, as kubelet does."""
        (self.directory / folder).mkdir(parents=True)
        for name, content in files.items():
            (self.directory / folder / name).write_bytes(content)
            link = self.directory / name
            if not link.is_symlink():
                link.symlink_to(Path("..data") / name)
        renamed = self.directory / "..data_tmp"
        renamed.symlink_to(folder)
        renamed.replace(self.directory / "..data")


@attrs.frozen
class Robot:
    """A service account that may list and watch ConfigMaps of its namespace."""

    admin: Client
    namespace: str

    async def create(self) -> None:
        meta = ObjectMeta(name=ROBOT)
        rule = PolicyRule(api_groups=("",), resources=("configmaps",), verbs=("list", "watch"))
        await self.admin.api(ServiceAccount, self.namespace).create(ServiceAccount(metadata=meta))
        await self.admin.api(Role, self.namespace).create(Role(metadata=meta, rules=(rule,)))
        subject = Subject(kind="ServiceAccount", name=ROBOT, namespace=self.namespace)
        role = RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name=ROBOT)
        binding = RoleBinding(metadata=meta, role_ref=role, subjects=(subject,))
        await self.admin.api(RoleBinding, self.namespace).create(binding)

    async def token(self, bound_to: str) -> str:
        """A token that ends with a Secret of this name, as those of pods end with their pod."""
        secret = await self.admin.api(Secret, self.namespace).create(Secret(metadata=ObjectMeta(name=bound_to)))
        reference = BoundObjectReference(api_version="v1", kind="Secret", name=bound_to, uid=secret.metadata.uid)
        request = TokenRequest(spec=TokenRequestSpec(bound_object_ref=reference, expiration_seconds=600))
        accounts = self.admin.api(ServiceAccount, self.namespace)
        granted = await accounts.create_subresource(ROBOT, "token", request)
        token: str = granted.status.token
        return token

    async def end(self, bound_to: str) -> None:
        """End a token."""
        await self.admin.api(Secret, self.namespace).delete(bound_to)


def authority_of(control_plane: ControlPlane) -> bytes:
    document = yaml.safe_load(control_plane.kubeconfig.read_text())
    return base64.b64decode(document["clusters"][0]["cluster"]["certificate-authority-data"])


@asynccontextmanager
async def robot_of(control_plane: ControlPlane) -> AsyncIterator[Robot]:
    async with open_client(kubeconfig=control_plane.kubeconfig) as admin:
        robot = Robot(admin, await make_namespace(admin, "in-cluster"))
        await robot.create()
        yield robot


@pytest.fixture
def volume(control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Volume:
    """The volume of a service account, and the environment of a pod without a kubeconfig."""
    address = urlsplit(control_plane.url)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", address.hostname or "")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(address.port))
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("KUBECONFIG", "POD_NAMESPACE"):
        monkeypatch.delenv(variable, raising=False)
    directory = tmp_path / "serviceaccount"
    # Only the place differs from that in a pod, where nobody but root may write.
    defaults = inspect.unwrap(load_config).__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "service_account_directory", directory)
    return Volume(directory)


async def credential_id(client: Client) -> str:
    """Say which token the client sends."""
    review = await client.api(SelfSubjectReview).create(SelfSubjectReview())
    assert review.status is not None
    assert review.status.user_info is not None
    (found,) = review.status.user_info.extra[CREDENTIAL_ID]
    return found


async def test_a_client_in_a_pod_survives_the_rotation_of_its_token(
    control_plane: ControlPlane, volume: Volume
) -> None:
    async with robot_of(control_plane) as robot:
        files = {"ca.crt": authority_of(control_plane), "namespace": robot.namespace.encode()}
        first, second = await robot.token("first"), await robot.token("second")
        volume.write({"token": first.encode(), **files}, "..2026_1")
        async with open_client() as client, trio.open_nursery() as nursery:
            assert client.config.in_cluster
            assert (client.config.server, client.config.namespace) == (control_plane.url, robot.namespace)
            maps = client.api(ConfigMap, robot.namespace)
            requests = 0

            async def request() -> None:
                nonlocal requests
                while True:
                    await maps.list()
                    requests += 1
                    await trio.sleep(0.02)

            send, receive = trio.open_memory_channel[str](10)

            async def watch(*, task_status: trio.TaskStatus[None]) -> None:
                listing = await maps.list()
                task_status.started()
                async with maps.watch(resource_version=listing.resource_version) as events:
                    async for event in events:
                        await send.send(event.object.metadata.name)

            await nursery.start(watch)
            nursery.start_soon(request)
            before = await credential_id(client)
            volume.write({"token": second.encode(), **files}, "..2026_2")
            await robot.end("first")
            old = ClusterConfig(server=control_plane.url, ca_data=files["ca.crt"], token=first)
            with trio.fail_after(60):
                # kube-apiserver remembers for ten seconds that a token is valid.
                async with open_client(old) as other:
                    while True:
                        try:
                            await other.api(ConfigMap, robot.namespace).list()
                        except UnauthorizedError:
                            break
                        await trio.sleep(0.2)
                for _ in range(20):
                    await maps.list()
                assert await credential_id(client) != before
                await robot.admin.api(ConfigMap, robot.namespace).create(ConfigMap(metadata=ObjectMeta(name="seen")))
                assert await receive.receive() == "seen"
            with pytest.raises(ForbiddenError):
                await client.api(ConfigMap, "default").list()
            nursery.cancel_scope.cancel()
    print(f"{requests} requests, none failed")

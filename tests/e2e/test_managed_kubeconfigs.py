"""Kubeconfigs as the tools of EKS, GKE and AKS write them, with stand-ins for their credential plugins."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
import yaml

from tests.e2e.workloads import make_namespace
from tests.support import managed_kubeconfigs
from tests.support.plugins import V1BETA1, Plugin, credential
from trioformer import open_client
from trioformer.errors import ExecPluginError
from trioformer.models import ObjectMeta
from trioformer.models.authentication_v1 import SelfSubjectReview, TokenRequest
from trioformer.models.core_v1 import Namespace, ServiceAccount
from trioformer.testing import ControlPlane


def embedded(control_plane: ControlPlane) -> dict[str, str]:
    """The control plane's authority and its administrator's certificate, as kubeconfigs have them."""
    document = yaml.safe_load(control_plane.kubeconfig.read_text())
    user = document["users"][0]["user"]
    return {
        "server": control_plane.url,
        "ca": document["clusters"][0]["cluster"]["certificate-authority-data"],
        "certificate": user["client-certificate-data"],
        "key": user["client-key-data"],
    }


@pytest.mark.parametrize("name", managed_kubeconfigs.COMMANDS)
async def test_a_kubeconfig_of_a_managed_cluster_works(
    name: str, control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_client(kubeconfig=control_plane.kubeconfig) as admin:
        namespace = await make_namespace(admin, "managed")
        accounts = admin.api(ServiceAccount, namespace)
        await accounts.create(ServiceAccount(metadata=ObjectMeta(name="jane")))
        token = (await accounts.create_subresource("jane", "token", TokenRequest())).status.token
    path = tmp_path / "config"
    path.touch(mode=0o600)
    path.write_text(getattr(managed_kubeconfigs, name).format(**embedded(control_plane)))

    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    async with open_client(kubeconfig=path) as client:
        with pytest.raises(ExecPluginError, match=managed_kubeconfigs.COMMANDS[name]):
            await client.api(SelfSubjectReview).create(SelfSubjectReview())
    plugin = Plugin(tmp_path / "bin", managed_kubeconfigs.COMMANDS[name])
    plugin.prints(credential(api_version=V1BETA1, token=token))
    async with open_client(kubeconfig=path) as client:
        for _ in range(3):
            review = await client.api(SelfSubjectReview).create(SelfSubjectReview())
            assert review.status is not None
            assert review.status.user_info is not None
            assert review.status.user_info.username == f"system:serviceaccount:{namespace}:jane"
    assert plugin.runs == 1


async def test_a_kubeconfig_with_a_certificate_and_a_token_works(control_plane: ControlPlane, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.touch(mode=0o600)
    fields = embedded(control_plane)
    path.write_text(managed_kubeconfigs.AKS_LOCAL.format(**fields))
    async with open_client(kubeconfig=path) as client:
        assert client.config.client_key_data == base64.b64decode(fields["key"])
        names = [namespace.name for namespace in await client.api(Namespace).list()]
        assert "default" in names

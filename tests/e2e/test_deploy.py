"""``examples/deploy`` on a cluster: applied, rolled out, and the operator with the permissions of its roles."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest
import trio
import yaml

from examples.website_operator import NAME, Website, WebsiteSpec
from tests.e2e.workloads import make_namespace, schedule
from tests.support.processes import ROOT, running
from trioformer import Client, ForbiddenError, NotFoundError, open_client, wait_for
from trioformer.manifests import apply_manifests, load_manifests, wait_for_manifests
from trioformer.models import ObjectMeta
from trioformer.models.apps_v1 import Deployment
from trioformer.models.authentication_v1 import TokenRequest, TokenRequestSpec
from trioformer.models.conditions import find_condition
from trioformer.models.core_v1 import ConfigMap, Pod, Secret, Service, ServiceAccount
from trioformer.testing import ControlPlane
from trioformer.watchtools import deleted

DEPLOY = ROOT / "examples" / "deploy"
Kubectl: TypeAlias = Callable[..., Awaitable[list[str]]]


@pytest.fixture
def kubectl(cluster: ControlPlane, assets: Path) -> Kubectl:
    async def run(*arguments: str) -> list[str]:
        """Run kubectl, which may warn of what another test has made, and return its lines."""
        command = [assets / "kubectl", "--kubeconfig", cluster.kubeconfig, *arguments]
        done = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode().splitlines()

    return run


@pytest.fixture
async def administrator(cluster: ControlPlane) -> AsyncIterator[Client]:
    async with open_client(kubeconfig=cluster.kubeconfig) as client:
        yield client


async def test_kubectl_and_the_library_apply_the_same_and_it_rolls_out(kubectl: Kubectl, administrator: Client) -> None:
    manifests = load_manifests(DEPLOY / "manifests")
    with trio.fail_after(60):
        assert len(await kubectl("apply", "-k", str(DEPLOY))) == len(manifests)
        results = await apply_manifests(administrator, manifests, field_manager="deployer")
        assert {str(each.action) for each in results} == {"unchanged"}
        async with trio.open_nursery() as nursery:
            nursery.start_soon(schedule, administrator, NAME)
            # The namespace admits restricted pods only, so these are.
            await wait_for_manifests(administrator, manifests)
            nursery.cancel_scope.cancel()
        await administrator.api(Deployment, namespace=NAME).delete(NAME)


async def kubeconfig_of_the_account(control_plane: ControlPlane, administrator: Client, directory: Path) -> Path:
    """Write a kubeconfig with a token of the pods' service account."""
    accounts = administrator.api(ServiceAccount, namespace=NAME)
    granted = await accounts.create_subresource(NAME, "token", TokenRequest(spec=TokenRequestSpec()))
    config = yaml.safe_load(control_plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": granted.status.token}
    config["contexts"][0]["context"]["namespace"] = NAME  # as in the pod, where a file names it
    path = directory / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path


def reason_of(website: Website) -> str:
    condition = find_condition(website.status.conditions, "Ready")
    return "" if condition is None else condition.reason


async def test_the_operator_works_with_the_permissions_of_its_roles_and_has_no_others(
    kubectl: Kubectl, cluster: ControlPlane, administrator: Client, tmp_path: Path
) -> None:
    await kubectl("apply", "-k", str(DEPLOY))
    kubeconfig = await kubeconfig_of_the_account(cluster, administrator, tmp_path)
    namespace = await make_namespace(administrator, "deploy")
    websites = administrator.api(Website, namespace=namespace)
    program = [str(ROOT / "examples" / "website_operator.py"), "--http", "127.0.0.1:0", "--kubeconfig", str(kubeconfig)]
    with trio.fail_after(120):
        async with running(*program) as operator:
            spec = WebsiteSpec(page="Hello", secret="settings")  # a name
            await websites.create(Website(metadata=ObjectMeta(name="site"), spec=spec))
            await wait_for(websites, "site", lambda site: reason_of(site) == "SecretMissing")
            await administrator.api(Secret, namespace=namespace).create(Secret(metadata=ObjectMeta(name="settings")))
            website = await wait_for(websites, "site", lambda site: reason_of(site) == "Progressing")
            for kind in (ConfigMap, Service, Deployment):
                await administrator.api(kind, namespace=namespace).get("site")
            await websites.delete("site")
            await wait_for(websites, "site", deleted(uid=website.uid))
            with pytest.raises(NotFoundError):
                await administrator.api(Deployment, namespace=namespace).get("site")
            assert await operator.interrupt() == 0
    assert (operator.lines, operator.errors) == ([], [])

    async with open_client(kubeconfig=kubeconfig) as client:
        with pytest.raises(ForbiddenError):
            await client.api(Secret, namespace=namespace).get("settings")
        with pytest.raises(ForbiddenError):
            await client.api(Pod, namespace=namespace).list()
        with pytest.raises(ForbiddenError):
            await client.api(ConfigMap, namespace=namespace).delete("site")

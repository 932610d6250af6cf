"""The last step of the tutorial in a cluster, with kubectl as on its pages, and with the permissions of deploy.yaml."""

from __future__ import annotations

import re
import signal
import sys
from functools import partial
from pathlib import Path

import httpx
import pytest
import trio
import yaml
from step_8_stop_cleanly import App

from tests.e2e.workloads import deployment
from tests.support.processes import ROOT, running
from trioformer import ForbiddenError, load_config, open_client, wait_for
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import ConfigMap, Pod, ServiceAccount
from trioformer.testing import ControlPlane

STEPS = "examples/first_controller"


async def output_of(*command: str, given: bytes = b"") -> str:
    done = await trio.run_process(command, stdin=given, capture_stdout=True, cwd=ROOT)
    return done.stdout.decode()


def kubeconfig_with(token: str, kubeconfig: Path, directory: Path) -> Path:
    """Write a kubeconfig for the same cluster with a service account's token."""
    content = yaml.safe_load(kubeconfig.read_text())
    content["users"] = [{"name": each["name"], "user": {"token": token}} for each in content["users"]]
    path = directory / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content))
    return path


def has_status(app: App, *, ready: str) -> bool:
    return bool(app.status.conditions) and str(app.status.ready) == ready


async def test_the_tutorials_controller_works_in_a_cluster_with_its_own_permissions(
    assets: Path, cluster: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def kubectl(*arguments: str, given: bytes = b"") -> str:
        return await output_of(str(assets / "kubectl"), f"--kubeconfig={cluster.kubeconfig}", *arguments, given=given)

    async with open_client(load_config(kubeconfig=cluster.kubeconfig)) as admin:
        definition = await output_of(
            sys.executable, "-m", "trioformer.crds", "examples.first_controller.step_7_run_in_a_cluster"
        )
        await kubectl("apply", "--server-side", "-f", "-", given=definition.encode())
        await kubectl("wait", "--for=condition=Established", "crd/apps.example.com")
        await kubectl("apply", "-f", f"{STEPS}/deploy.yaml")
        await kubectl("apply", "-f", f"{STEPS}/app.yaml")
        deployed = await admin.api(Deployment, "app-controller").get("app-controller")
        assert deployed.spec.template.spec.service_account_name == "app-controller"
        account = await admin.api(ServiceAccount, "app-controller").create_token("app-controller")
        kubeconfig = kubeconfig_with(account.status.token, cluster.kubeconfig, tmp_path)
        async with open_client(kubeconfig=kubeconfig) as client:
            with pytest.raises(ForbiddenError):  # the permissions are those of the token
                await client.api(ConfigMap, "default").list()

        async def wait_for_columns(name: str, ready: str, available: str) -> None:
            await wait_for(admin.api(App, "default"), name, partial(has_status, ready=ready))
            assert (await kubectl("get", "apps.example.com")).split() == [
                *["NAME", "READY", "AVAILABLE"],
                name,
                ready,
                available,
            ]

        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        with trio.fail_after(90):
            async with running(f"{STEPS}/step_8_stop_cleanly.py", "--http", "127.0.0.1:0") as program:
                await program.wait_for(lambda _: "INFO: controller apps: started, workers: 2" in program.errors)
                (url,) = re.findall(r"INFO: serving (\S+)", "\n".join(program.errors))
                async with httpx.AsyncClient() as http:
                    for path in ("/healthz", "/readyz"):
                        assert (await http.get(url + path)).text == "ok"
                    await wait_for_columns("web", "0", "False")
                    deployments = admin.api(Deployment, "default")
                    await deployments.create(deployment("web", replicas=2))
                    await wait_for_columns("web", "2", "True")
                    await deployments.scale("web", 1)
                    await wait_for_columns("web", "1", "False")
                    metrics = (await http.get(f"{url}/metrics")).text
                    assert 'controller_runtime_reconcile_total{controller="apps",result="success"}' in metrics
                program.process.send_signal(signal.SIGTERM)
                assert await program.wait_until_over() == 0
        await deployments.delete("web")
        await kubectl("delete", "-f", f"{STEPS}/app.yaml", "-f", f"{STEPS}/deploy.yaml", "--wait=false")
        await kubectl("delete", "crd/apps.example.com")
        await admin.api(Pod, "default").delete_collection(label_selector="app=web", grace_period_seconds=0)
    lines = [line.removeprefix("INFO: ") for line in program.errors if not line.startswith("INFO: HTTP Request")]
    assert lines[-3:-1] == [
        "stopping",
        "controller apps: stopping; 0 requests running, 0 pending, 0 delayed",
    ]
    found = [line for line in lines if " needed" in line]
    assert (found[0], found[-1]) == ("default/web: 0 ready, 2 needed", "default/web: 1 ready, 2 needed")
    assert "default/web: 2 ready, 2 needed" in found
    assert "WARNING" not in "\n".join(program.errors)

"""``init`` in an empty folder, from a wheel and in environments of their own, and its operator on a cluster."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import attrs
import pytest
import trio
import yaml

from tests.e2e.workloads import schedule
from tests.support.processes import ROOT
from trioformer import Client, ForbiddenError, open_client, wait_for
from trioformer.models.admissionregistration_v1 import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from trioformer.models.core_v1 import ConfigMap, ServiceAccount
from trioformer.testing import ControlPlane

NAME = "blog-operator"


def call(*command: str | Path, cwd: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=cwd, env=environ, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]} {done.stderr[-3000:]}"


@attrs.frozen
class Project:
    """A new project, and the environment in which it was made."""

    folder: Path
    python: Path
    wheel: Path


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("empty")
    call(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder / "dist", ".", cwd=ROOT)
    (wheel,) = (folder / "dist").iterdir()
    python = folder / "venv" / "bin" / "python"
    begin = time.monotonic()
    call(sys.executable, "-m", "venv", "venv", cwd=folder)
    call(python, "-m", "pip", "install", wheel, cwd=folder)
    call(python, "-m", "trioformer", "init", NAME, "--kind", "Blog", "--group", "blogs.dev", cwd=folder)
    call(python, "-m", "pip", "install", "-e", ".[dev]", cwd=folder / NAME)
    call(python, "-m", "pytest", cwd=folder / NAME)
    # Most of it is the installation: half a minute on a quiet machine, and two at most are the goal.
    print(f"from an empty folder to green tests in {time.monotonic() - begin:.0f} s")
    return Project(folder / NAME, python, wheel)


def check_as_the_ci(python: Path, folder: Path) -> None:
    """Run the checks of a project's CI file with its environment."""
    workflow = yaml.safe_load((folder / ".github" / "workflows" / "ci.yml").read_text())
    commands = [step["run"].split() for step in workflow["jobs"]["test"]["steps"] if "run" in step]
    checks = [command for command in commands if command[0] in ("ruff", "mypy", "pytest")]
    assert len(checks) == 4
    for command in checks:
        call(python.with_name(command[0]), *command[1:], cwd=folder)


def test_its_code_passes_the_checks_of_its_ci(project: Project) -> None:
    check_as_the_ci(project.python, project.folder)


def install_as_the_image(project: Project, folder: Path) -> Path:
    """Install what the Dockerfile copies, in the way that it does, and return the interpreter."""
    dockerfile = (project.folder / "Dockerfile").read_text()
    source = folder / "source"
    source.mkdir()
    for names, target in re.findall(r"^COPY (?!--from)(.*) (\S+)$", dockerfile, re.MULTILINE):
        for path in [found for name in names.split() for found in project.folder.glob(name)]:
            call("cp", "-r", path, source / target, cwd=folder)
    call("cp", project.wheel, source, cwd=folder)
    call(sys.executable, "-m", "venv", "image", cwd=folder)
    python = folder / "image" / "bin" / "python"
    (arguments,) = re.findall(r"^RUN /venv/bin/pip (.*)$", dockerfile, re.MULTILINE)
    call(python, "-m", "pip", *arguments.split(), cwd=source)
    return python


def write_kubeconfig(path: Path, token: str, namespace: str, kubeconfig: Path) -> None:
    """Write a kubeconfig for the same cluster with a service account's token."""
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    config["contexts"][0]["context"]["namespace"] = namespace  # as in the pod, where a file names it
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))


def problems_in(log: Path) -> list[str]:
    return [line for line in log.read_text().splitlines() if "forbidden" in line or line.startswith("ERROR")]


@attrs.frozen
class Installation:
    """A project whose manifests are applied, and whose program may run with the role of its pods."""

    folder: Path
    python: Path
    """An interpreter with what the image contains."""
    cluster: ControlPlane
    assets: Path

    async def kubectl(self, *arguments: str) -> str:
        command: list[str | Path] = [self.assets / "kubectl", f"--kubeconfig={self.cluster.kubeconfig}", *arguments]
        done = await trio.run_process(command, cwd=self.folder, capture_stdout=True, capture_stderr=True)
        return done.stdout.decode()

    @asynccontextmanager
    async def operating(self, administrator: Client, folder: Path, *flags: str) -> AsyncIterator[None]:
        """Run the program with the role of its pods beside the block, and end it as the kubelet does."""
        name, kubeconfig = self.folder.name, folder / "kubeconfig"
        account = await administrator.api(ServiceAccount, namespace=name).create_token(name)
        write_kubeconfig(kubeconfig, account.status.token, name, self.cluster.kubeconfig)
        async with open_client(kubeconfig=kubeconfig) as client:
            with pytest.raises(ForbiddenError):  # the permissions are those of the token
                await client.api(ConfigMap, namespace="default").list()
        package = name.replace("-", "_")
        command: list[str | Path] = [self.python, "-m", package, "--http", "127.0.0.1:0", *flags]
        environ = {"KUBECONFIG": str(kubeconfig)}
        with (folder / "log").open("wb") as log:
            program = partial(trio.run_process, command, cwd=folder, env=environ, stderr=log)
            async with trio.open_nursery() as nursery:
                process = await nursery.start(program)
                yield
                process.terminate()
        assert problems_in(folder / "log") == []


@pytest.fixture(scope="module")
def image(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_as_the_image(project, tmp_path_factory.mktemp("image"))


async def test_the_readme_leads_to_an_operator_that_works_with_its_role(
    project: Project, image: Path, cluster: ControlPlane, assets: Path, tmp_path: Path
) -> None:
    installation = Installation(project.folder, image, cluster, assets)
    kubectl = installation.kubectl
    commands = re.findall(r"^    kubectl (.*)$", (project.folder / "README.md").read_text(), re.MULTILINE)
    *installs, example, shows = [command.split() for command in commands]
    with trio.fail_after(120):
        async with open_client(kubeconfig=cluster.kubeconfig) as administrator, trio.open_nursery() as nursery:
            for namespace in (NAME, "default"):
                nursery.start_soon(schedule, administrator, namespace)
            for arguments in installs:
                await kubectl(*arguments)
            async with installation.operating(administrator, tmp_path):
                await kubectl(*example)
                await kubectl("wait", "--for=condition=Ready", "blogs/first", "--timeout=60s")
                shown = await kubectl(*[each for each in shows if each != "--watch"])
                assert shown.split() == ["NAME", "REPLICAS", "READY", "first", "2", "True"]
                await kubectl("delete", "-f", "example.yaml")
                await kubectl("wait", "--for=delete", "deployment/first", "--timeout=60s")
            await kubectl("delete", "-f", "deploy", "--wait=false")
            nursery.cancel_scope.cancel()


async def test_an_operator_with_webhooks_installs_them_with_its_role(
    project: Project, cluster: ControlPlane, assets: Path, tmp_path: Path
) -> None:
    name, work = "hook-operator", project.folder.parent
    init = ["-m", "trioformer", "init", name, "--kind", "Hook", "--group", "hooks.dev", "--webhook"]
    for folder, command in ((work, init), (work / name, ["-m", "pip", "install", "-e", ".[dev]"])):
        await trio.to_thread.run_sync(partial(call, project.python, *command, cwd=folder))
    await trio.to_thread.run_sync(check_as_the_ci, project.python, work / name)
    installation = Installation(work / name, project.python, cluster, assets)
    with trio.fail_after(60):
        async with open_client(kubeconfig=cluster.kubeconfig) as administrator:
            await installation.kubectl("apply", "-f", "deploy")
            async with installation.operating(administrator, tmp_path, "--webhooks"):
                for kind in (ValidatingWebhookConfiguration, MutatingWebhookConfiguration):
                    await wait_for(administrator.api(kind), f"{name}.{name}", lambda _: True, missing_ok=True)
            await installation.kubectl("delete", "-f", "deploy", "--wait=false")
            for kind in (ValidatingWebhookConfiguration, MutatingWebhookConfiguration):
                await administrator.api(kind).delete(f"{name}.{name}")

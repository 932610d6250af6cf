"""``-v=8`` beside kubectl's: the same requests and statuses, and no token and no Secret."""

from __future__ import annotations

import base64
import logging
import re
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.e2e.parallel import in_parallel
from trioformer import Client, load_config, open_client
from trioformer.cli._request_log import RequestLog
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Namespace, Secret, ServiceAccount
from trioformer.testing import ControlPlane

NAMESPACE = "requests"
PASSWORD = "passw0rd-0f-a-secret"
ENCODED = base64.b64encode(PASSWORD.encode()).decode()
COMMANDS = [
    "get namespaces",
    "get namespace requests",
    "get configmaps",
    "get configmap settings -o json",
    "get pod missing",
    "get nodes -o wide",
    "get secrets -A",
    "get secret login -o yaml",
    "get deployments -l app=web",
    "get replicasets,services -l app=web,tier!=back",
    "get pods --field-selector spec.nodeName=node-1",
    "logs missing",
    "exec missing -- true",
    "version",
]

OURS = re.compile(r"trioformer\.cli: ([A-Z]+) https://[^/ ]+(\S+) ([0-9]{3}) ")
SENT = re.compile(r'"Request" verb="([A-Z]+)" url="https://[^/"]+([^"]+)"')
ANSWERED = re.compile(r'"Response" status="([0-9]{3}) ')


def requests_of_ours(log: str) -> list[tuple[str, ...]]:
    return about_objects(OURS.findall(log))


def requests_of_kubectl(log: str) -> list[tuple[str, ...]]:
    """Leave out what only kubectl sends: a time limit, and after a 404 a request for the namespace."""
    sent, codes = SENT.findall(log), ANSWERED.findall(log)
    found = [(verb, url.removesuffix("?timeout=32s"), code) for (verb, url), code in zip(sent, codes, strict=True)]
    if [code for *_, code in found[-2:]] == ["404", "200"]:
        assert found.pop()[1] == f"/api/v1/namespaces/{NAMESPACE}"
    return about_objects(found)


def about_objects(requests: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Leave out discovery, which kubectl caches."""
    return [each for each in requests if not re.fullmatch(r"/(api|apis)(/[^/]+){0,2}(\?.*)?", each[1])]


async def log_of(*command: str | Path) -> str:
    done = await trio.run_process([*map(str, command)], capture_stdout=True, capture_stderr=True, check=False)
    return done.stderr.decode()


async def fill(client: Client) -> str:
    """Create the objects of the commands, and return a token."""
    await client.api(Namespace).apply(Namespace(metadata=ObjectMeta(name=NAMESPACE)), field_manager="tests")
    head = partial(ObjectMeta, namespace=NAMESPACE)
    settings = ConfigMap(metadata=head(name="settings"), data={"color": "blue"})
    await client.api(ConfigMap, namespace=NAMESPACE).apply(settings, field_manager="tests")
    login = Secret(metadata=head(name="login"), string_data={"password": PASSWORD})
    await client.api(Secret, namespace=NAMESPACE).apply(login, field_manager="tests")
    accounts = client.api(ServiceAccount, namespace=NAMESPACE)
    await accounts.apply(ServiceAccount(metadata=head(name="robot")), field_manager="tests")
    return (await accounts.create_token("robot")).status.token


async def test_the_requests_are_those_of_kubectl_and_nothing_in_the_log_is_secret(
    control_plane: ControlPlane, assets: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = load_config(kubeconfig=control_plane.kubeconfig)
    caplog.set_level(logging.DEBUG, "trioformer")
    async with open_client(config, observer=RequestLog(config.server, 9)) as client:
        token = await fill(client)
    made = "\n".join(each.getMessage() for each in caplog.records)
    assert f"/namespaces/{NAMESPACE}/serviceaccounts/robot/token 201 Created" in made
    found: dict[str, tuple[str, str]] = {}

    async def run(command: str) -> None:
        flags = [f"--kubeconfig={control_plane.kubeconfig}", f"--namespace={NAMESPACE}", f"--token={token}", "-v=8"]
        words = command.split()
        kubectl = [assets / "kubectl", *flags, f"--cache-dir={tmp_path}", *words]
        found[command] = (await log_of(sys.executable, "-m", "trioformer", *flags, *words), await log_of(*kubectl))

    await in_parallel([partial(run, command) for command in COMMANDS], at_once=2)
    pairs = {name: (requests_of_ours(ours), requests_of_kubectl(theirs)) for name, (ours, theirs) in found.items()}
    assert {name: pair for name, pair in pairs.items() if pair[0] != pair[1]} == {}
    assert len([each for ours, _ in pairs.values() for each in ours]) >= 10
    assert {code for ours, _ in pairs.values() for _, _, code in ours} == {"200", "404"}
    assert "color" in found["get configmap settings -o json"][0]
    assert ENCODED in found["get secret login -o yaml"][1], "kubectl no longer shows Secrets"
    logs = [made, *(ours for ours, _ in found.values())]
    assert [each for each in logs if any(secret in each for secret in (PASSWORD, ENCODED, token))] == []

"""A pod whose container is a directory of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.containers import LocalContainer
from trioformer.client import Api, Client
from trioformer.models import from_dict
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, ScriptedPod

SPEC = {"nodeName": "node-1", "containers": [{"name": "main"}]}


@pytest.fixture
def pods(client: Client) -> Api[Pod]:
    return client.api(Pod, namespace="default")


@pytest.fixture
def web(api_server: APIServer) -> ScriptedPod:
    """A pod without any program."""
    api_server.create(from_dict(Pod, {"metadata": {"name": "web-0"}, "spec": SPEC}))
    return api_server.script_pod("web-0")


@pytest.fixture
def container(web: ScriptedPod, tmp_path: Path) -> LocalContainer:
    """Its container, with the programs of this machine."""
    directory = tmp_path / "container"
    directory.mkdir()
    found = LocalContainer(directory)
    web.on_exec(found.execute)
    return found


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A directory of this machine."""
    directory = tmp_path / "here"
    directory.mkdir()
    return directory

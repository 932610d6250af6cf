"""Which plugins may run, and where a command is found."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.plugins import Plugin
from trioformer.client import ClientOptions, open_client
from trioformer.errors import ExecPluginError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer
from trioformer.transport import PluginPolicy
from trioformer.transport.auth._exec_policy import PluginError, find_plugin, look_path


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plugin:
    found = Plugin(tmp_path / "bin", "test-plugin")
    monkeypatch.setenv("PATH", f"relative:{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return found


@pytest.mark.parametrize(
    ("policy", "allowlist"),
    [
        ("AllowAll", ["aws"]),
        ("DenyAll", []),
        ("Allowlist", None),
        ("Allowlist", []),
        ("HIGHLYILLEGAL", None),
        ("HIGHLYILLEGAL", ["aws"]),
    ],
)
def test_a_policy_that_contradicts_its_allowlist_is_refused(policy: Any, allowlist: list[str] | None) -> None:
    """client-go: TestPluginPolicy"""
    with pytest.raises(ValueError, match=r"policy|allowlist"):
        PluginPolicy(policy=policy, allowlist=allowlist)


@pytest.mark.parametrize("by_path", [True, False])
@pytest.mark.parametrize("entry_by_path", [True, False])
def test_policies_and_allowlists(plugin: Plugin, by_path: bool, entry_by_path: bool) -> None:
    """client-go: TestPluginPolicy"""
    existing, missing = (str(plugin.path), plugin.name), ("/no/such/path", "no-such-plugin")
    command, absent = ((names[0] if by_path else names[1]) for names in (existing, missing))
    listed, other = ((names[0] if entry_by_path else names[1]) for names in (existing, missing))
    allowing = PluginPolicy(policy="Allowlist", allowlist=["foo", listed])
    assert find_plugin(command, PluginPolicy()) == find_plugin(command, allowing) == str(plugin.path)
    for named, policy, words in (
        (command, PluginPolicy(policy="DenyAll"), "is not allowed"),
        (command, PluginPolicy(policy="Allowlist", allowlist=[other]), "is not in the allowlist"),
        (absent, allowing, "is not in the allowlist"),
        (absent, PluginPolicy(), "is not installed"),
    ):
        assert words in refused(named, policy)


def refused(command: str, policy: PluginPolicy) -> str:
    with pytest.raises(PluginError) as caught:
        find_plugin(command, policy)
    assert caught.value.permanent
    return str(caught.value)


@pytest.mark.parametrize("entry", ["", "./x", "a/../b", "a//b", "/a/", "a/."])
def test_an_entry_that_is_not_normalized_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="must be a name or a normalized path"):
        PluginPolicy(policy="Allowlist", allowlist=[entry])


def test_a_string_is_no_allowlist() -> None:
    with pytest.raises(TypeError, match=r"such as \['aws'\], not a string"):
        PluginPolicy(policy="Allowlist", allowlist="aws")


@pytest.mark.parametrize("patience", [0, -1, math.nan])
def test_the_patience_is_positive(patience: float) -> None:
    with pytest.raises(ValueError, match="more than 0 seconds"):
        PluginPolicy(patience=patience)


def test_another_plugin_of_the_same_name_is_not_allowed_by_a_path(plugin: Plugin, tmp_path: Path) -> None:
    other = Plugin(tmp_path / "other", plugin.name)
    policy = PluginPolicy(policy="Allowlist", allowlist=[str(other.path)])
    for command in (plugin.name, str(plugin.path)):
        assert "allowlist" in refused(command, policy)
    policy = PluginPolicy(policy="Allowlist", allowlist=[plugin.name])
    assert find_plugin(str(plugin.path), policy) == str(plugin.path)
    assert "allowlist" in refused(str(other.path), policy)


def test_a_path_is_normalized_before_it_is_compared(plugin: Plugin) -> None:
    policy = PluginPolicy(policy="Allowlist", allowlist=[str(plugin.path)])
    assert find_plugin(f"{plugin.directory}/../bin/{plugin.name}", policy) == str(plugin.path)
    assert find_plugin(f"./bin/{plugin.name}", policy) == str(plugin.path)


def test_relative_directories_of_the_path_are_ignored(plugin: Plugin, tmp_path: Path) -> None:
    Plugin(tmp_path / "relative", plugin.name)
    assert look_path(plugin.name) == str(plugin.path)


def test_directories_and_odd_names_are_not_executable_files(plugin: Plugin) -> None:
    assert look_path(str(plugin.directory)) is look_path("/a\0b") is None


async def test_open_client_takes_the_policy(plugin: Plugin) -> None:
    config = ClusterConfig(server="https://x", exec=plugin.config())
    policy = PluginPolicy(policy="Allowlist", allowlist=["aws"])
    transport = APIServer().http_transport()
    async with open_client(config, http_transport=transport, options=ClientOptions(plugin_policy=policy)) as client:
        with pytest.raises(ExecPluginError, match="is not in the allowlist of plugin_policy") as caught:
            await client.api(ConfigMap, namespace="default").list()
    assert caught.value.permanent
    assert plugin.runs == 0

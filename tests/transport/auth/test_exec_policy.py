"""Which plugins may run, and where a command is found."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.support.plugins import Plugin
from trioformer.client import open_client
from trioformer.errors import ExecPluginError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer
from trioformer.transport import PluginPolicy
from trioformer.transport.auth._exec_policy import Problem, find_plugin, look_path


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plugin:
    found = Plugin(tmp_path / "bin", "test-plugin")
    monkeypatch.setenv("PATH", f"relative:{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return found


MATRIX = list(
    itertools.product(
        ["AllowAll", "DenyAll", "Allowlist", "HIGHLYILLEGAL"],  # policies
        [None, 0, 1, 3],  # entries of the allowlist
        [True, False],  # whether the plugin exists
        [True, False],  # whether it is in the allowlist
        [True, False],  # whether the plugin is named by its path
        [True, False],  # whether the entry is
    )
)


@pytest.mark.parametrize(("policy", "length", "exists", "is_listed", "by_path", "entry_by_path"), MATRIX)
def test_policies_and_allowlists(
    plugin: Plugin, policy: Any, length: int | None, exists: bool, is_listed: bool, by_path: bool, entry_by_path: bool
) -> None:
    """client-go: TestPluginPolicy"""
    existing, missing = (str(plugin.path), plugin.name), ("/no/such/path", "no-such-plugin")
    command = (existing if exists else missing)[0 if by_path else 1]
    entry = (existing if is_listed else missing)[0 if entry_by_path else 1]
    allowlist = None if length is None else [entry, "foo-1", "foo-2"][:length]
    is_valid = (policy in ("AllowAll", "DenyAll") and allowlist is None) or (policy == "Allowlist" and bool(length))
    if not is_valid:
        with pytest.raises(ValueError, match=r"policy|allowlist"):
            PluginPolicy(policy=policy, allowlist=allowlist)
        return
    found = find_plugin(command, PluginPolicy(policy=policy, allowlist=allowlist))
    if policy == "DenyAll":
        assert isinstance(found, Problem)
        assert found.text == 'is not allowed: plugin_policy is "DenyAll"'
    elif policy == "Allowlist" and exists != is_listed:
        assert isinstance(found, Problem)
        assert found.text == "is not in the allowlist of plugin_policy; add its command"
    elif exists:
        assert found == str(plugin.path)
    else:
        assert isinstance(found, Problem)
        assert found.permanent


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
    assert isinstance(find_plugin(plugin.name, policy), Problem)
    assert isinstance(find_plugin(str(plugin.path), policy), Problem)
    policy = PluginPolicy(policy="Allowlist", allowlist=[plugin.name])
    assert find_plugin(str(plugin.path), policy) == str(plugin.path)
    assert isinstance(find_plugin(str(other.path), policy), Problem)


def test_a_path_is_normalized_before_it_is_compared(plugin: Plugin) -> None:
    policy = PluginPolicy(policy="Allowlist", allowlist=[str(plugin.path)])
    assert find_plugin(f"{plugin.directory}/../bin/{plugin.name}", policy) == str(plugin.path)
    assert find_plugin(f"./bin/{plugin.name}", policy) == str(plugin.path)


def test_relative_directories_of_the_path_are_ignored(plugin: Plugin, tmp_path: Path) -> None:
    Plugin(tmp_path / "relative", plugin.name)
    assert look_path(plugin.name) == str(plugin.path)


def _directories(plugin: Plugin) -> Iterable[str]:
    return (str(plugin.directory), "a\0b")


def test_directories_and_odd_names_are_not_executable_files(plugin: Plugin) -> None:
    assert [look_path(path) for path in _directories(plugin)] == [None, None]


async def test_open_client_takes_the_policy(plugin: Plugin) -> None:
    config = ClusterConfig(server="https://x", exec=plugin.config())
    policy = PluginPolicy(policy="Allowlist", allowlist=["aws"])
    async with open_client(config, http_transport=APIServer(), plugin_policy=policy) as client:
        with pytest.raises(ExecPluginError, match="is not in the allowlist of plugin_policy") as caught:
            await client.api(ConfigMap, namespace="default").list()
    assert caught.value.permanent
    assert plugin.runs == 0


async def test_a_policy_of_another_type_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="plugin_policy must be a PluginPolicy, not str"):
        async with open_client(ClusterConfig(server="https://x"), http_transport=APIServer(), plugin_policy="DenyAll"):  # type: ignore[arg-type]  # the mistake
            pass

"""Kubeconfigs and plugins as on Windows: its paths are names of files in the working directory here."""

from __future__ import annotations

import json
import ntpath
import os
from pathlib import Path, PureWindowsPath
from typing import Any

import pytest

from tests.support.kubeconfigs import Certificates
from trioformer.kubeconfig import _config, _credentials, _entries, _files, _load, load_config
from trioformer.transport.auth import _exec_policy

HOME = PureWindowsPath(r"C:\Users\me")
CONFIG = HOME / ".kube" / "config"


class WindowsOS:
    """The module ``os`` as it is on Windows."""

    name, path, sep, pathsep = "nt", ntpath, "\\", ";"

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


@pytest.fixture(autouse=True)
def windows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for module in (_config, _credentials, _entries, _exec_policy, _files, _load):
        monkeypatch.setattr(module, "os", WindowsOS())


def write_kubeconfig(path: PureWindowsPath, name: str, **cluster: str) -> None:
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": r".\bin\aws"}}
    document = {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example.com", **cluster}}],
        "users": [{"name": name, "user": user}],
    }
    Path(str(path)).write_text(json.dumps(document))
    Path(str(path)).chmod(0o666)  # as everything on Windows, which is no reason to warn


def test_the_default_is_in_the_folder_of_the_user(pems: Certificates, caplog: pytest.LogCaptureFixture) -> None:
    Path(str(HOME / "ca.crt")).write_bytes(pems.ca)
    write_kubeconfig(CONFIG, "one", **{"certificate-authority": r"..\ca.crt"})
    config = load_config(environ={"USERPROFILE": str(HOME)})
    assert config.server == "https://one.example.com"
    assert config.ca_file == str(HOME / "ca.crt")
    assert config.exec is not None
    assert config.exec.command == str(CONFIG.parent / "bin" / "aws")
    assert caplog.records == []


def test_files_of_the_variable_are_separated_by_semicolons(pems: Certificates) -> None:
    Path(r"C:\ca.crt").write_bytes(pems.ca)
    two = PureWindowsPath(r"D:\two.yaml")
    write_kubeconfig(CONFIG, "one")
    write_kubeconfig(two, "two", **{"certificate-authority": r"C:\ca.crt"})
    environ = {"KUBECONFIG": f"{CONFIG};{two}", "USERPROFILE": r"C:\Users\other"}
    assert load_config(environ=environ).server == "https://one.example.com"
    assert load_config(environ=environ, context="two").ca_file == r"C:\ca.crt"


def test_a_plugin_is_found_by_its_name_without_the_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    program = PureWindowsPath(r"C:\bin\aws.exe")
    Path(str(program)).touch(mode=0o700)
    monkeypatch.setenv("PATH", r".;C:\Windows;C:\bin")
    monkeypatch.setenv("PATHEXT", ".com;.exe")
    assert _exec_policy.look_path("aws") == str(program)

"""Warnings about kubeconfigs that others may read or change."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from trioformer._util import warn_once
from trioformer.kubeconfig import load_config, load_kubeconfig
from trioformer.kubeconfig._permissions import _log

CLUSTER = "apiVersion: v1\nclusters: [{name: a, cluster: {server: 'https://h'}}]\ncurrent-context: a\n"
CONTEXT = "contexts: [{name: a, context: {cluster: a}}]\n"
WITHOUT = f"{CLUSTER}{CONTEXT}users: [{{name: a, user: {{tokenFile: token}}}}]\n"


def with_user(user: str) -> str:
    return f"{CLUSTER}{CONTEXT}users: [{{name: a, user: {{tokenFile: token}}}}, {{name: other, user: {user}}}]\n"


CHANGE = "may change it, and so have credentials sent elsewhere"
TOKEN = with_user("{token: s3cret}")


@pytest.fixture(autouse=True)
def _levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "trioformer.kubeconfig")


def write(path: Path, text: str, mode: int) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(
    ("text", "mode", "expected"),
    [
        (TOKEN, 0o600, None),
        (TOKEN, 0o700, None),
        (TOKEN, 0o611, None),
        (TOKEN, 0o640, "its group may read the credentials in it (mode 0640)"),
        (TOKEN, 0o604, "every user may read the credentials in it (mode 0604)"),
        (TOKEN, 0o644, "every user may read the credentials in it (mode 0644)"),
        (WITHOUT, 0o644, None),
        (WITHOUT, 0o664, f"its group {CHANGE} (mode 0664)"),
        (WITHOUT, 0o646, f"every user {CHANGE} (mode 0646)"),
        (
            TOKEN,
            0o664,
            f"its group {CHANGE} and every user may read the credentials in it (mode 0664)",
        ),
    ],
)
def test_what_others_may_do_with_a_kubeconfig_is_a_warning(
    text: str, mode: int, expected: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "config", text, mode)
    load_kubeconfig(path)
    assert caplog.messages == ([] if expected is None else [f"{path}: {expected}: run chmod 600 {path}"])
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize(
    ("user", "is_credential"),
    [
        ("{token: s3cret}", True),
        ("{username: a, password: s3cret}", True),
        ("{client-key-data: s3cret}", True),
        ("{auth-provider: {name: gcp, config: {access-token: s3cret}}}", True),
        ("{exec: {command: aws, env: [{name: A, value: s3cret}]}}", True),
        ("{exec: {command: aws, args: [get-token], env: null}}", False),
        ("{exec: aws}", False),
        ("{client-certificate-data: QUFB, client-key: key.pem}", False),
        ("{username: a, token: '', password: null}", False),
        ("{tokenFile: token}", False),
    ],
)
def test_what_counts_as_a_credential(
    user: str, is_credential: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    load_kubeconfig(write(tmp_path / "config", with_user(user), 0o644))
    assert [message.split(": ")[1] for message in caplog.messages] == (
        ["every user may read the credentials in it (mode 0644)"] if is_credential else []
    )


@pytest.mark.parametrize(("url", "is_warned"), [("http://u:s3cret@proxy", True), ("http://proxy", False)])
def test_a_proxy_with_a_password_counts_as_a_credential(
    url: str, is_warned: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clusters = f"clusters: [{{name: a, cluster: {{server: 'https://h', proxy-url: '{url}'}}}}]\n"
    load_kubeconfig(write(tmp_path / "config", f"current-context: a\n{clusters}{CONTEXT}", 0o644))
    assert ["read the credentials in it" in message for message in caplog.messages] == [True] * is_warned


def test_each_file_is_warned_about_once_and_its_name_can_be_used_in_a_shell(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = write(tmp_path / "one two", TOKEN, 0o644), write(tmp_path / "second", TOKEN, 0o644)
    for _ in range(3):
        load_config(environ={"KUBECONFIG": os.pathsep.join((first, second))})
    assert [message.rpartition("run ")[2] for message in caplog.messages] == [
        f"chmod 600 '{first}'",
        f"chmod 600 {second}",
    ]


def test_the_permissions_that_count_are_those_of_the_file_behind_a_link(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "link").symlink_to(write(tmp_path / "config", TOKEN, 0o600))
    load_kubeconfig(str(tmp_path / "link"))
    assert caplog.messages == []


def mounted_secret(directory: Path, text: str, mode: int) -> str:
    """Write a kubeconfig as kubelet mounts a key of a Secret, and return its path."""
    (directory / "..2026_11_22_12_00_00.1").mkdir()
    write(directory / "..2026_11_22_12_00_00.1" / "config", text, mode)
    (directory / "..data").symlink_to("..2026_11_22_12_00_00.1")
    (directory / "config").symlink_to("..data/config")
    return str(directory / "config")


@pytest.mark.parametrize("mode", [0o400, 0o440, 0o640, 0o644])
def test_a_mounted_secret_that_others_may_read_is_not_warned_about(
    mode: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    load_kubeconfig(mounted_secret(tmp_path, TOKEN, mode))
    assert caplog.messages == []


def test_a_mounted_secret_that_others_may_change_names_its_default_mode(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = mounted_secret(tmp_path, TOKEN, 0o666)
    load_kubeconfig(path)
    assert caplog.messages == [f"{path}: every user {CHANGE} (mode 0666): set defaultMode: 0400 in its volume"]


@pytest.mark.parametrize("mode", [0o440, 0o644, 0o666])
def test_a_file_on_a_read_only_file_system_is_not_warned_about(
    mode: int, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "config", TOKEN, mode)
    found = os.statvfs(path)
    for flags, is_warned in ((os.ST_RDONLY | os.ST_NOSUID, False), (os.ST_NOSUID, True)):
        monkeypatch.setattr(os, "statvfs", lambda _, flags=flags: os.statvfs_result((*found[:8], flags, found[9])))
        load_kubeconfig(path)
        assert bool(caplog.messages) == is_warned


def test_files_of_a_service_account_are_not_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path / "token", "s3cret", 0o666)
    write(tmp_path / "ca.crt", "-----BEGIN CERTIFICATE-----\nQUFB\n-----END CERTIFICATE-----\n", 0o666)
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    assert load_config(environ=environ, service_account_directory=tmp_path).in_cluster
    assert caplog.messages == []


def test_the_memory_of_what_was_logged_is_limited(caplog: pytest.LogCaptureFixture) -> None:
    for n in range(3000):
        warn_once(_log, f"warning {n} %s")
    assert len(caplog.messages) == 3000
    assert caplog.messages[7] == "warning 7 %s"
    assert warn_once.cache_info().currsize <= 1024
    warn_once.cache_clear()

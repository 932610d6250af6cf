"""Warnings about kubeconfigs that other users can read or change."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from tests.support.kubeconfigs import load_kubeconfig
from trioformer._util import warn_once
from trioformer.kubeconfig import load_config

LOGGER = "trioformer.kubeconfig.permissions"
TOKEN = (
    "apiVersion: v1\nclusters: [{name: a, cluster: {server: 'https://h'}}]\ncurrent-context: a\n"
    "contexts: [{name: a, context: {cluster: a}}]\nusers: [{name: a, user: {token: s3cret}}]\n"
)


@pytest.fixture(autouse=True)
def _levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, LOGGER)


def write(path: Path, text: str, mode: int) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(
    ("mode", "is_warned"), [(0o600, False), (0o700, False), (0o640, True), (0o604, True), (0o620, True)]
)
def test_what_others_may_do_with_a_kubeconfig_is_a_warning(
    mode: int, is_warned: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "config", TOKEN, mode)
    load_kubeconfig(path)
    assert [path in message and f"{mode:04o}" in message for message in caplog.messages] == [True] * is_warned
    assert "s3cret" not in caplog.text
    caplog.clear()
    load_kubeconfig(write(tmp_path / "without", TOKEN.replace("token: s3cret", "tokenFile: token"), mode))
    assert caplog.messages == []


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


def test_files_of_a_service_account_are_not_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path / "token", "s3cret", 0o666)
    write(tmp_path / "ca.crt", "-----BEGIN CERTIFICATE-----\nQUFB\n-----END CERTIFICATE-----\n", 0o666)
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    assert load_config(environ=environ, service_account_directory=tmp_path).in_cluster
    assert caplog.messages == []


def test_the_memory_of_what_was_logged_is_limited(caplog: pytest.LogCaptureFixture) -> None:
    for n in range(3000):
        warn_once(logging.getLogger(LOGGER), f"warning {n} %s")
    assert len(caplog.messages) == 3000
    assert caplog.messages[7] == "warning 7 %s"
    assert warn_once.cache_info().currsize <= 1024
    warn_once.cache_clear()

"""Our loader and kubectl's read the same from the same kubeconfigs: ``kubectl config view --minify --flatten``."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from tests.e2e.kubeconfig_cases import EXTENSION, FOLDER, Case, certificates, encoded, generated, hand_made, write
from trioformer import ClusterConfig, load_config
from trioformer.errors import ConfigError

AT_ONCE = 2
"""Processes of kubectl; each takes a CPU."""
GENERATED = 120


# ------------------------------------------------------------------------------------------------------ comparison


@attrs.frozen
class Seen:
    """What both say about a configuration, or nothing of it if it is refused."""

    cluster: Mapping[str, object]
    user: Mapping[str, object]
    exec: Mapping[str, object] | None
    context: str | None
    namespace: str


def seen_by_kubectl(view: dict[str, Any], directory: Path) -> Seen:
    """What kubectl says; it shows paths of tokens and plugins as they are written, relative to the user's own file."""
    context = view["contexts"][0]
    cluster = view["clusters"][0]["cluster"]
    user = view["users"][0]["user"] if view["users"] else {}
    plugin = user.get("exec")
    folder = directory / next((e["extension"] for e in user.get("extensions") or () if e["name"] == FOLDER), ".")
    token_file = os.path.normpath(folder / user["tokenFile"]) if user.get("tokenFile") else None
    command = plugin and plugin["command"]
    if command and os.sep in command and not os.path.isabs(command):
        command = os.path.normpath(folder / command)
    extensions = {extension["name"]: extension.get("extension") for extension in cluster.get("extensions") or ()}
    return Seen(
        cluster={
            "server": cluster["server"],
            "ca": _decoded(cluster, "certificate-authority-data"),
            "insecure": cluster.get("insecure-skip-tls-verify", False),
            "tls_server_name": cluster.get("tls-server-name"),
            "proxy_url": cluster.get("proxy-url"),
            "disable_compression": cluster.get("disable-compression", False),
        },
        user={
            "certificate": _decoded(user, "client-certificate-data"),
            "key": _decoded(user, "client-key-data"),
            "token": user.get("token") or (token_file and Path(token_file).read_text().strip()),
            "token_file": token_file,
            "username": user.get("username"),
            "password": user.get("password"),
            "as": user.get("as"),
            "as_uid": user.get("as-uid"),
            "as_groups": tuple(user.get("as-groups") or ()),
            "as_user_extra": {key: tuple(values) for key, values in (user.get("as-user-extra") or {}).items()},
        },
        exec=plugin
        and {
            "api_version": plugin["apiVersion"],
            "command": command,
            "args": tuple(plugin["args"] or ()),
            "env": {variable["name"]: variable["value"] for variable in plugin["env"] or ()},
            "install_hint": plugin.get("installHint"),
            "interactive_mode": plugin["interactiveMode"],
            "provide_cluster_info": plugin["provideClusterInfo"],
            "cluster_config": extensions.get(EXTENSION),
        },
        context=context["name"],
        namespace=context["context"].get("namespace", "default"),
    )


def _decoded(fields: Mapping[str, str], key: str) -> bytes | None:
    return base64.b64decode(fields[key]) if key in fields else None


def seen_by_us(config: ClusterConfig) -> Seen:
    user = config.impersonate
    plugin = config.exec
    return Seen(
        cluster={
            "server": config.server,
            "ca": _content(config.ca_data, config.ca_file),
            "insecure": config.insecure_skip_tls_verify,
            "tls_server_name": config.tls_server_name,
            "proxy_url": config.proxy_url,
            "disable_compression": config.disable_compression,
        },
        user={
            "certificate": _content(config.client_certificate_data, config.client_certificate_file),
            "key": _content(config.client_key_data, config.client_key_file),
            "token": config.token,
            "token_file": config.token_file,
            "username": config.username,
            "password": config.password,
            "as": user and user.user,
            "as_uid": user and user.uid,
            "as_groups": user.groups if user else (),
            "as_user_extra": user.extra if user else {},
        },
        exec=plugin
        and {
            "api_version": plugin.api_version,
            "command": plugin.command,
            "args": plugin.args,
            "env": plugin.env,
            "install_hint": plugin.install_hint,
            "interactive_mode": plugin.interactive_mode.value,
            "provide_cluster_info": plugin.provide_cluster_info,
            "cluster_config": plugin.cluster_config,
        },
        context=config.context,
        namespace=config.namespace,
    )


def _content(data: bytes | None, file: str | None) -> bytes | None:
    return Path(file).read_bytes() if file else data


@attrs.frozen
class Directory:
    """The directory of a case, and both programs in it."""

    path: Path
    case: Case
    program: Path

    @property
    def environ(self) -> dict[str, str]:
        listed = {} if self.case.explicit else {"KUBECONFIG": os.pathsep.join(self.case.listed)}
        return {"HOME": str(self.path), **listed}

    async def kubectl(self) -> Seen | str:
        """What kubectl says, or its error."""
        command = [str(self.program), "config", "view", "--minify", "--flatten", "--output=json"]
        command += [f"--kubeconfig={self.case.listed[0]}"] if self.case.explicit else []
        command += [] if self.case.context is None else [f"--context={self.case.context}"]
        done = await trio.run_process(
            command, capture_stdout=True, capture_stderr=True, env=self.environ, cwd=self.path, check=False
        )
        return done.stderr.decode() if done.returncode else seen_by_kubectl(json.loads(done.stdout), self.path)

    def trioformer(self) -> Seen | str:
        """What our loader says, or its error."""
        try:
            return seen_by_us(
                load_config(
                    kubeconfig=self.case.listed[0] if self.case.explicit else None,
                    context=self.case.context,
                    environ=self.environ,
                )
            )
        except ConfigError as exc:
            return str(exc)


async def test_our_loader_reads_what_kubectl_reads(
    assets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = certificates()
    pems = encoded(files)
    cases = hand_made(pems) | {f"generated {n}": generated(n, pems) for n in range(GENERATED)}
    limit = trio.CapacityLimiter(AT_ONCE)
    directories = {
        name: Directory(tmp_path / str(number), case, assets / "kubectl")
        for number, (name, case) in enumerate(cases.items())
    }
    answers: dict[str, Seen | str] = {}

    async def ask(name: str, directory: Directory) -> None:
        async with limit:
            answers[name] = await directory.kubectl()

    async with trio.open_nursery() as nursery:
        for name, directory in directories.items():
            write(directory.case, directory.path, files)
            nursery.start_soon(ask, name, directory)

    different: dict[str, object] = {}
    for name, directory in directories.items():
        monkeypatch.chdir(directory.path)
        ours, theirs = directory.trioformer(), answers[name]
        if ours != theirs and not (isinstance(ours, str) and isinstance(theirs, str)):
            different[name] = {"ours": ours, "kubectl": theirs}
    assert different == {}
    refused = sum(isinstance(answer, str) for answer in answers.values())
    print(f"{len(answers)} combinations, of which both refuse {refused}")
    assert len(answers) - refused >= 60
    assert refused >= 30

"""Kubeconfigs for tests: documents with one context, and the errors of loading them."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from trioformer.errors import ConfigError
from trioformer.kubeconfig import ClusterConfig, load_config

SERVER = "https://k8s.example:6443"

Write = Callable[..., str]
"""Writes a document, text or bytes to a file below ``tmp_path``, and returns its path."""


@attrs.frozen
class Certificates:
    ca: bytes
    certificate: bytes
    key: bytes


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def kubeconfig(
    *, cluster: object = None, user: object = None, context: object = None, name: str = "dev", **top: object
) -> dict[str, object]:
    """A kubeconfig whose context, cluster and user have the name ``name``."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": SERVER} if cluster is None else cluster}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name} if context is None else context}],
        "users": [{"name": name, "user": {} if user is None else user}],
    } | top


def with_cluster(**fields: object) -> dict[str, object]:
    return kubeconfig(cluster={"server": SERVER} | fields)


def with_user(**fields: object) -> dict[str, object]:
    return kubeconfig(user=fields)


def with_context(**fields: object) -> dict[str, object]:
    return kubeconfig(context={"cluster": "dev", "user": "dev"} | fields)


def load_kubeconfig(*paths: str | os.PathLike[str], context: str | None = None) -> ClusterConfig:
    """Load a context of kubeconfig files, outside a pod."""
    if len(paths) == 1:
        return load_config(kubeconfig=paths[0], context=context, environ={})
    return load_config(context=context, environ={"KUBECONFIG": os.pathsep.join(map(os.fspath, paths))})


def fails(load: Callable[[], object]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load()
    assert "\n" not in str(caught.value)
    return caught.value


@attrs.frozen
class Pod:
    """A service account's directory, and the environment of its pod."""

    directory: Path
    environ: dict[str, str]

    def load(self, environ: dict[str, str] | None = None, **options: Any) -> ClusterConfig:
        whole = self.environ | (environ or {})
        return load_config(environ=whole, service_account_directory=self.directory, **options)

    def load_in_cluster(self, **environ: str) -> ClusterConfig:
        return self.load(environ)

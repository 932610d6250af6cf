"""Kubeconfig files, ``$KUBECONFIG`` and the in-cluster service account → one frozen :class:`ClusterConfig`.

The search order, the merge and the checks are those of client-go's ``tools/clientcmd`` and ``rest.InClusterConfig``.
Everything wrong with a configuration is a :class:`~trioformer.errors.ConfigError` that names the file and the key,
and never shows a secret.

These functions are plain ``def``: they read a few small local files and do not checkpoint.

- ``_config.py``: :class:`ClusterConfig`, what the transport needs to know
- ``_checks.py``: what a server URL, a token, a certificate or a namespace may be
- ``_files.py``: YAML files → merged, named entries
- ``_resolve.py``: the entries that one context selects → :class:`ClusterConfig`
- ``_load.py``: where configuration is looked for; the in-cluster service account
"""

from __future__ import annotations

from ._config import ClusterConfig as ClusterConfig
from ._load import load_config as load_config
from ._load import load_in_cluster as load_in_cluster
from ._load import load_kubeconfig as load_kubeconfig

__all__ = ["ClusterConfig", "load_config", "load_in_cluster", "load_kubeconfig"]

"""The configuration of a client: kubeconfig files, ``$KUBECONFIG``, and the in-cluster service account.

The search order, the merge and the checks follow client-go's ``tools/clientcmd`` and ``rest.InClusterConfig``.
If the configuration is invalid, the functions raise :class:`~trioformer.errors.ConfigError`, which names the file and
the key and never shows a secret.

The functions are synchronous: they read a few small local files and do not execute a checkpoint.

- ``_config.py``: :class:`ClusterConfig`, :class:`ExecConfig`, :class:`Impersonation` and :class:`ConfigOverrides`
- ``_load.py``: finds the kubeconfig files, or the in-cluster service account
- ``_files.py``: reads and merges kubeconfig files
- ``_resolve.py``: makes a :class:`ClusterConfig` from the cluster and the user of a context, and replaces values
- ``_credentials.py``: reads the cluster and the user: server, proxy, certificates, tokens, plugins, impersonation
- ``_entries.py``: reads the fields of clusters, contexts and users, and collects their problems
- ``_checks.py``: checks of server URLs, proxies and namespaces
- ``_internal.py``: names for other packages of trioformer
"""

from __future__ import annotations

from ._config import ClusterConfig as ClusterConfig
from ._config import ConfigOverrides as ConfigOverrides
from ._config import ExecConfig as ExecConfig
from ._config import Impersonation as Impersonation
from ._load import load_config as load_config

__all__ = [
    "ClusterConfig",
    "ConfigOverrides",
    "ExecConfig",
    "Impersonation",
    "load_config",
]

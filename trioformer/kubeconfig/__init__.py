"""The configuration of a client: kubeconfig files, ``$KUBECONFIG``, and the in-cluster service account.

The search order, the merge and the checks follow client-go's ``tools/clientcmd`` and ``rest.InClusterConfig``.
If the configuration is invalid, the functions raise :class:`~trioformer.errors.ConfigError`, which names the file and
the key and never shows a secret.

The functions are synchronous: they read a few small local files and do not execute a checkpoint.

- ``_config.py``: :class:`ClusterConfig`, :class:`ExecConfig` and :class:`Impersonation`
- ``_overrides.py``: :class:`ConfigOverrides`
- ``_load.py``: finds the kubeconfig files, or the in-cluster service account
- ``_files.py``: reads and merges kubeconfig files
- ``_resolve.py``: makes a :class:`ClusterConfig` from the cluster and the user of a context, and replaces values
- ``_credentials.py``: reads the cluster and the user: server, proxy, certificates, tokens, plugins, impersonation
- ``_entries.py``: reads the fields of clusters, contexts and users, and collects their problems
- ``_checks.py``: checks of server URLs, proxies and namespaces
- ``_internal.py``: names for other packages of trioformer
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._util import names_on_demand as _names_on_demand
from ._config import ClusterConfig as ClusterConfig
from ._config import ExecConfig as ExecConfig
from ._config import Impersonation as Impersonation

if TYPE_CHECKING:
    from ._load import load_config as load_config
    from ._overrides import ConfigOverrides as ConfigOverrides

__all__ = [
    "ClusterConfig",
    "ConfigOverrides",
    "ExecConfig",
    "Impersonation",
    "load_config",
]

if not TYPE_CHECKING:  # not needed for a configuration that is made in code
    __getattr__, __dir__ = _names_on_demand(globals(), {"load_config": "_load", "ConfigOverrides": "_overrides"})

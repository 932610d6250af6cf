"""Find built-in kinds by name, in the generated table of ``builtin_kinds.py``.

A lookup imports only the table and the module that contains the kind.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import cast

from ._meta import KubernetesObject
from ._resources import ResourceInfo

__all__ = ["builtin", "builtin_kind", "builtin_resources"]


@functools.cache
def _table() -> Mapping[tuple[str, str], ResourceInfo]:
    return {(info.api_version, info.kind): info for info in builtin_resources(beta=True)}


def _builtin_kinds() -> ModuleType:
    return importlib.import_module(".builtin_kinds", __package__)


def builtin_resources(*, beta: bool = False) -> tuple[ResourceInfo, ...]:
    """Return every built-in resource, sorted by API group, version and plural.

    Source: the aggregated discovery of the kube-apiserver that the models were generated from.

    Args:
        beta: Whether to also return beta versions, after all other versions. A server serves beta versions only if its
            administrator has enabled them with ``--runtime-config``.
    """
    table = _builtin_kinds()
    resources: tuple[ResourceInfo, ...] = table.RESOURCES + table.BETA_RESOURCES if beta else table.RESOURCES
    return resources


def builtin(api_version: str, kind: str) -> ResourceInfo:
    """Return the resource of the built-in kind with this name.

    Raises:
        LookupError: There is no built-in kind with this API version and name.
    """
    try:
        return _table()[api_version, kind]
    except KeyError:
        raise LookupError(f"{api_version} {kind} is not a built-in kind; write a class for a custom kind") from None


def builtin_kind(api_version: str, kind: str) -> type[KubernetesObject]:
    """Import and return the class of a built-in kind.

    Args:
        api_version: The API version, such as ``apps/v1``, ``v1`` for the core group, or ``networking.k8s.io/v1beta1``.
        kind: The name of the kind, such as ``Deployment``.

    Raises:
        LookupError: There is no built-in kind with this API version and name.
    """
    info = builtin(api_version, kind)
    module = importlib.import_module(f".{_builtin_kinds().MODULES[info.api_version]}", __package__)
    return cast("type[KubernetesObject]", getattr(module, info.kind))

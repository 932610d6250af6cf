"""Find built-in kinds by name, in the generated table of ``builtin_kinds.py``.

A lookup imports only the table and the module of the kind.
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
    """Return every built-in resource, ordered by API group, version and plural.

    Source: the aggregated discovery of the kube-apiserver that the models were generated from.

    Args:
        beta: Also return beta versions, after the others; a server serves them only if its administrator has enabled
            them (``--runtime-config``).
    """
    table = _builtin_kinds()
    resources: tuple[ResourceInfo, ...] = table.RESOURCES + table.BETA_RESOURCES if beta else table.RESOURCES
    return resources


def builtin(api_version: str, kind: str) -> ResourceInfo:
    """Return the resource of a built-in kind.

    Raises:
        LookupError: There is no such built-in kind.
    """
    try:
        return _table()[api_version, kind]
    except KeyError:
        raise LookupError(f"{api_version} {kind} is not a built-in kind; write a class for a custom kind") from None


def builtin_kind(api_version: str, kind: str) -> type[KubernetesObject]:
    """Import the class of a built-in kind.

    Args:
        api_version: ``group/version``, or only the version for the core group, such as ``apps/v1`` or ``v1``, or a
            beta version, such as ``networking.k8s.io/v1beta1``.
        kind: The kind, such as ``Deployment``.

    Raises:
        LookupError: There is no such built-in kind.
    """
    info = builtin(api_version, kind)
    module = importlib.import_module(f".{_builtin_kinds().MODULES[info.api_version]}", __package__)
    return cast("type[KubernetesObject]", getattr(module, info.kind))

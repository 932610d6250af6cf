"""Finds the configuration, in kubectl's order: kubeconfig files, or the in-cluster service account."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .._suggestions import describe
from ..errors import ConfigError
from ._config import ClusterConfig
from ._overrides import ConfigOverrides
from ._pod import SERVICE_ACCOUNT_DIRECTORY, Pod, Variables

if TYPE_CHECKING:
    from ._files import Kubeconfig

_log = logging.getLogger("trioformer.kubeconfig")


def load_config(
    *,
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
    overrides: ConfigOverrides | None = None,
    environ: Mapping[str, str] | None = None,
    service_account_directory: str | os.PathLike[str] = SERVICE_ACCOUNT_DIRECTORY,
) -> ClusterConfig:
    """Load the configuration that kubectl would use.

    The first of these that is given is used: the file ``kubeconfig``; the files of ``$KUBECONFIG``, merged;
    ``~/.kube/config``.
    If nothing in them says what to connect to, the service account of the pod that the program runs in is used: the
    files are missing or empty, or there is no current context, and neither a context nor a server is given.
    An invalid kubeconfig is always an error.
    Inside a pod, a context without a namespace gets the pod's (``$POD_NAMESPACE``, otherwise the service account's).

    Reads a few small local files, and does not checkpoint.
    A kubeconfig that is a FIFO or a device is read to its end; in a trio task, which must not wait, it is an error:
    call ``open_client(kubeconfig=…)`` there.
    The behaviour is that of client-go's ``tools/clientcmd/merged_client_builder.go``, except that a context whose
    cluster or user does not exist is an error, inside a pod as well.

    Args:
        kubeconfig: The only file to use; it must exist.
        context: The context to use instead of the current one.
        overrides: Values that replace those of the context, its cluster and its user, or of the service account.
        environ: The environment variables; None for those of the process.
        service_account_directory: The directory of the pod's service account.

    Raises:
        ConfigError: No configuration was found (the error lists what was tried), or it is not valid or not supported
            (the error names file and key).
        TypeError: ``overrides`` is of another type.
    """
    if overrides is not None and not isinstance(overrides, ConfigOverrides):
        raise TypeError(f"overrides must be a ConfigOverrides, not {describe(overrides)}; write ConfigOverrides(…)")
    # A program with a configuration of its own need not import what reads kubeconfigs.
    from ._files import read_list, read_one  # noqa: PLC0415
    from ._resolve import resolve  # noqa: PLC0415

    variables = Variables(environ)
    pod = Pod(variables, os.fspath(service_account_directory))
    if kubeconfig is not None:
        tried: list[str] = []
        merged = read_one(os.fspath(kubeconfig))
    else:
        files, tried = _candidates(variables)
        merged, reasons = read_list(files)
        tried += reasons
        if variables.get("KUBECONFIG") and files and not merged.files:
            _log.warning("no file of $KUBECONFIG exists: %s", ", ".join(reasons))
    has_target = merged.current_context or (overrides and (overrides.server or overrides.cluster))
    if context is None and not has_target:
        problem = pod.problem()
        if problem is None:
            return _use_pod(pod, merged, tried, overrides)
        tried.append(f"in-cluster ({problem})")
    if merged.is_empty and not (overrides and overrides.server):
        if kubeconfig is not None:
            raise _empty(os.fspath(kubeconfig))
        missing = "cluster configuration" if context is None else f"kubeconfig with context {context!r}"
        raise ConfigError(f"no {missing} found; tried {', '.join(tried)}")
    return resolve(merged, context=context, overrides=overrides, default_namespace=pod.default_namespace)


def _use_pod(pod: Pod, merged: Kubeconfig, tried: list[str], overrides: ConfigOverrides | None) -> ClusterConfig:
    if merged.is_empty:
        tried_files = tried or [f"{file!r} (is empty)" for file in merged.files]
        _log.debug("using the in-cluster configuration; tried before it: %s", ", ".join(tried_files))
    else:
        _log.warning("using the in-cluster configuration: %s has no current-context", merged.source)
    return pod.load(overrides)


def load_kubeconfig(*paths: str | os.PathLike[str], context: str | None = None) -> ClusterConfig:
    """Load the configuration of a context from kubeconfig files.

    A single file must exist and not be empty.
    Several files are a list like that of ``$KUBECONFIG``: duplicates and files that do not exist are skipped; the first
    file with a cluster, context or user of some name, or with a current context, wins.

    The environment and the service account are not used.
    Reads a few small local files, and does not checkpoint; a FIFO or a device as :func:`load_config` does.

    Args:
        paths: The files, in order of precedence.
        context: The context to use instead of the current one.

    Raises:
        ConfigError: Something is missing, not valid or not supported; the error names file and key.
        TypeError: There is no path.
    """
    if not paths:
        raise TypeError("load_kubeconfig() needs at least one path")
    from ._files import read_list, read_one  # noqa: PLC0415
    from ._resolve import resolve  # noqa: PLC0415

    files = [os.fspath(path) for path in paths]
    if len(files) == 1:
        kubeconfig = read_one(files[0])
        if kubeconfig.is_empty:
            raise _empty(files[0])
        return resolve(kubeconfig, context=context)
    merged, reasons = read_list(files)
    if merged.is_empty:
        raise ConfigError(f"no cluster configuration found; tried {', '.join(reasons)}")
    return resolve(merged, context=context)


def load_in_cluster(
    *,
    environ: Mapping[str, str] | None = None,
    service_account_directory: str | os.PathLike[str] = SERVICE_ACCOUNT_DIRECTORY,
) -> ClusterConfig:
    """Load the service account of the pod that the program runs in (client-go's ``rest.InClusterConfig``).

    Server: ``$KUBERNETES_SERVICE_HOST`` and ``$KUBERNETES_SERVICE_PORT``.
    Token and certificate authority: the files ``token`` and ``ca.crt``, which are rotated and therefore read again.
    Without ``ca.crt`` a warning is logged, and the system's certificate authorities are trusted.
    Namespace: ``$POD_NAMESPACE``, otherwise the file ``namespace``, otherwise ``default``.

    Reads a few small local files, and does not checkpoint.

    Args:
        environ: The environment variables; None for those of the process.
        service_account_directory: The directory of the service account.

    Raises:
        ConfigError: The program does not run in a pod, or a file is not valid.
    """
    pod = Pod(Variables(environ), os.fspath(service_account_directory))
    problem = pod.problem()
    if problem is not None:
        raise ConfigError(f"no in-cluster configuration: {problem}")
    return pod.load()


def _candidates(variables: Variables) -> tuple[list[str], list[str]]:
    """Return the kubeconfig files to read, and the reasons if no file is found."""
    value = variables.get("KUBECONFIG")
    if value:
        files = [file for file in value.split(os.pathsep) if file]
        return files, [] if files else ["$KUBECONFIG (is an empty list)"]
    home = variables.get("HOME") or variables.get("USERPROFILE")
    if home:
        return [os.path.join(home, ".kube", "config")], []
    return [], ["~/.kube/config ($HOME is not set)"]


def _empty(file: str) -> ConfigError:
    return ConfigError("is empty: there are no contexts, clusters or users, and no current-context", file=file)

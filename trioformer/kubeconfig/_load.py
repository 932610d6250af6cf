"""Find the configuration in the same order as kubectl: kubeconfig files first, then the in-cluster service account."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import partial
from typing import Final

from .._files import read_file
from ..errors import ConfigError
from ._checks import CheckError, check_namespace
from ._config import ClusterConfig, hide_frames
from ._entries import Entry, Problems
from ._files import read_list, read_one
from ._overrides import ConfigOverrides
from ._resolve import configure, resolve

_log = logging.getLogger("trioformer.kubeconfig")

SERVICE_ACCOUNT_DIRECTORY: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""The directory of a pod's service account: ``token``, ``ca.crt`` and ``namespace``."""

_SERVICE: Final = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")


@hide_frames
def load_config(
    *,
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
    overrides: ConfigOverrides | None = None,
    environ: Mapping[str, str] | None = None,
    service_account_directory: str | os.PathLike[str] = SERVICE_ACCOUNT_DIRECTORY,
) -> ClusterConfig:
    """Load the configuration that kubectl would use.

    The configuration is read from the first source that is set: the file ``kubeconfig``, the merged files of
    ``$KUBECONFIG``, or ``~/.kube/config``.
    If this source does not set a current context, for example because its files are missing, the service account of
    the program's own pod is used. This does not apply if a context, a cluster or a server is given.
    An invalid kubeconfig is always an error.
    Inside a pod, a context without a namespace uses the namespace of the pod (``$POD_NAMESPACE``, or else the
    namespace of the service account).

    The function reads a few small local files, and does not execute a checkpoint.
    A kubeconfig that is a FIFO or a device is read to its end.  In a trio task, which must not block, such a file is
    an error. Call ``open_client(kubeconfig=…)`` instead.
    The behavior follows client-go's ``tools/clientcmd/merged_client_builder.go``, except that a context with a missing
    cluster or user is an error even inside a pod.

    Args:
        kubeconfig: The only kubeconfig file to use. The file must exist.
        context: The context to use instead of the current one.
        overrides: Values that override the context, its cluster and its user, or the service account.
        environ: The environment variables. The default, None, uses the variables of the process.
        service_account_directory: The directory of the pod's service account.

    Raises:
        ConfigError: No configuration was found, or the configuration is not valid or not supported. The error lists
            the sources that were tried, or names the file and the key.
    """
    environ = os.environ if environ is None else environ
    overrides = overrides or ConfigOverrides()
    directory = os.fspath(service_account_directory)
    tried: list[str] = []
    if kubeconfig is not None:
        merged = read_one(os.fspath(kubeconfig))
    else:
        files, tried = _candidates(environ)
        merged, reasons = read_list(files)
        tried += reasons
        if environ.get("KUBECONFIG") and files and not merged.files:
            _log.warning("none of the files in $KUBECONFIG exists: %s", ", ".join(reasons))
    pod_problem = _pod_problem(environ, directory)
    if context is None and not (merged.current_context or overrides.server or overrides.cluster):
        if pod_problem is None:
            if merged.is_empty:
                tried = tried or [f"{file!r} (is empty)" for file in merged.files]
                _log.debug("using the in-cluster configuration; tried before it: %s", ", ".join(tried))
            else:
                files_text = ", ".join(merged.files)
                _log.warning("using the in-cluster configuration: %s has no current-context", files_text)
            return _load_pod(environ, directory, overrides)
        tried.append(f"in-cluster ({pod_problem})")
    if merged.is_empty and not overrides.server:
        if kubeconfig is not None:
            raise _empty(os.fspath(kubeconfig))
        what = "no cluster configuration found" if context is None else f"no kubeconfig with context {context!r} found"
        raise ConfigError(f"{what}; tried {', '.join(tried)}")

    def namespace() -> str:
        return "default" if pod_problem else _pod_namespace(environ, directory)

    return resolve(merged, context=context, overrides=overrides, default_namespace=namespace)


def _pod_problem(environ: Mapping[str, str], directory: str) -> str | None:
    """Return the reason why there is no in-cluster configuration, or None if there is one."""
    for variable in _SERVICE:
        if not environ.get(variable):
            return f"${variable} is not set"
    token = os.path.join(directory, "token")
    if os.path.isdir(token) or not os.path.exists(token):
        return f"{token!r} does not exist"
    return None


def _load_pod(environ: Mapping[str, str], directory: str, overrides: ConfigOverrides) -> ClusterConfig:
    """Load the service account as if it were a kubeconfig context, and apply the overrides."""
    host, port = (environ[variable] for variable in _SERVICE)
    bracketed = f"[{host}]" if ":" in host and not host.startswith("[") else host
    token = os.path.join(os.path.abspath(directory), "token")
    authority: str | None = os.path.join(os.path.abspath(directory), "ca.crt")
    if not os.path.lexists(str(authority)):
        _log.warning("%s does not exist: trusting the system's certificate authorities", authority)
        authority = None
    names = {"namespace": "overrides.namespace", "server": " and ".join(f"${variable}" for variable in _SERVICE)}
    namespace = overrides.namespace or _pod_namespace(environ, directory)
    entry = partial(Entry, Problems(), "", "in-cluster", overridden=names)
    return configure(
        entry(fields={"namespace": namespace}),
        entry(fields={"server": f"https://{bracketed}:{port}", "certificate-authority": authority}),
        entry(fields={"tokenFile": token}),
        overrides,
        lambda: "default",
        source="in-cluster",
        in_cluster=True,
    )


def _pod_namespace(environ: Mapping[str, str], directory: str) -> str:
    file = os.path.join(directory, "namespace")
    name, where = environ.get("POD_NAMESPACE"), {"key": "$POD_NAMESPACE"}
    if not name:
        try:
            name, where = read_file(file).reveal().decode("latin-1").strip(), {"file": file}
        except OSError:  # like client-go, treat every error as an absent file
            return "default"
    try:
        return check_namespace(name or "default")
    except CheckError as exc:
        raise ConfigError(str(exc), **where) from None


def _candidates(environ: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the kubeconfig files to read, and the reasons to report if none of them is found."""
    value = environ.get("KUBECONFIG")
    if value:
        files = [file for file in value.split(os.pathsep) if file]
        return files, [] if files else ["$KUBECONFIG (is an empty list)"]
    home = environ.get("HOME") or environ.get("USERPROFILE")
    if home:
        return [os.path.join(home, ".kube", "config")], []
    return [], ["~/.kube/config ($HOME is not set)"]


def _empty(file: str) -> ConfigError:
    return ConfigError("is empty: there are no contexts, clusters or users, and no current-context", file=file)

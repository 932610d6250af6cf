"""Finds the configuration, in kubectl's order: kubeconfig files, or the in-cluster service account."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from typing import Final, final

from .._secret import Secret
from ..errors import ConfigError
from ._checks import CheckError, MissingError, check_certificates, check_namespace, parse_server, read_file, read_token
from ._config import ClusterConfig
from ._files import Kubeconfig, read_kubeconfig
from ._problems import Problems
from ._resolve import resolve

_log = logging.getLogger("trioformer.kubeconfig")

SERVICE_ACCOUNT_DIRECTORY: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""The directory of a pod's service account: ``token``, ``ca.crt`` and ``namespace``."""

_SERVICE = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")


def load_config(
    *,
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
    environ: Mapping[str, str] | None = None,
    service_account_directory: str | os.PathLike[str] = SERVICE_ACCOUNT_DIRECTORY,
) -> ClusterConfig:
    """Load the configuration that kubectl would use.

    The first of these that is given is used: the file ``kubeconfig``; the files of ``$KUBECONFIG``, merged;
    ``~/.kube/config``.
    If the files of the last two are missing or empty, and no context is given, the service account of the pod that the
    program runs in is used; an invalid kubeconfig is always an error.
    Inside a pod, a context without a namespace gets the pod's (``$POD_NAMESPACE``, otherwise the service account's).

    Reads a few small local files, and does not checkpoint.
    The behaviour is that of client-go's ``tools/clientcmd/merged_client_builder.go`` with two differences:
    an empty ``kubeconfig`` file, and a kubeconfig without a current context, are errors inside a pod as well.

    Args:
        kubeconfig: The only file to use; it must exist.
        context: The context to use instead of the current one.
        environ: The environment variables; None for those of the process.
        service_account_directory: The directory of the pod's service account.

    Raises:
        ConfigError: No configuration was found (the error lists what was tried), or it is not valid or not supported
            (the error names file and key).
    """
    variables = _Variables(environ)
    pod = _Pod(variables, os.fspath(service_account_directory))
    if kubeconfig is not None:
        return resolve(_read_one(os.fspath(kubeconfig)), context=context, default_namespace=pod.default_namespace)
    files, tried = _candidates(variables)
    merged, reasons = _read_list(files)
    if not merged.is_empty:
        return resolve(merged, context=context, default_namespace=pod.default_namespace)
    tried += reasons
    if context is not None:
        raise ConfigError(f"no kubeconfig with context {context!r} found; tried {', '.join(tried)}")
    problem = pod.problem()
    if problem is None:
        _log.debug("using the in-cluster configuration; tried before it: %s", ", ".join(tried))
        return pod.load()
    raise ConfigError(f"no cluster configuration found; tried {', '.join([*tried, f'in-cluster ({problem})'])}")


def load_kubeconfig(*paths: str | os.PathLike[str], context: str | None = None) -> ClusterConfig:
    """Load the configuration of a context from kubeconfig files.

    A single file must exist and not be empty.
    Several files are a list like that of ``$KUBECONFIG``: duplicates and files that do not exist are skipped; the first
    file with a cluster, context or user of some name, or with a current context, wins.

    The environment and the service account are not used.
    Reads a few small local files, and does not checkpoint.

    Args:
        paths: The files, in order of precedence.
        context: The context to use instead of the current one.

    Raises:
        ConfigError: Something is missing, not valid or not supported; the error names file and key.
        TypeError: There is no path.
    """
    if not paths:
        raise TypeError("load_kubeconfig() needs at least one path")
    files = [os.fspath(path) for path in paths]
    if len(files) == 1:
        return resolve(_read_one(files[0]), context=context)
    merged, reasons = _read_list(files)
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
    pod = _Pod(_Variables(environ), os.fspath(service_account_directory))
    problem = pod.problem()
    if problem is not None:
        raise ConfigError(f"no in-cluster configuration: {problem}")
    return pod.load()


def _candidates(variables: _Variables) -> tuple[list[str], list[str]]:
    """Return the kubeconfig files to read, and the reasons if no file is found."""
    value = variables.get("KUBECONFIG")
    if value:
        files = [file for file in value.split(os.pathsep) if file]
        return files, [] if files else ["$KUBECONFIG (is an empty list)"]
    home = variables.get("HOME") or variables.get("USERPROFILE")
    if home:
        return [os.path.join(home, ".kube", "config")], []
    return [], ["~/.kube/config ($HOME is not set)"]


def _read_one(file: str) -> Kubeconfig:
    try:
        kubeconfig = read_kubeconfig(file)
    except MissingError as exc:
        hint = "; ~ is not expanded" if file.startswith("~") else ""
        raise ConfigError(f"does not exist{hint}", file=file or "''") from exc
    if kubeconfig.is_empty:
        raise ConfigError("is empty: there are no contexts, clusters or users, and no current-context", file=file)
    return kubeconfig


def _read_list(files: Iterable[str]) -> tuple[Kubeconfig, list[str]]:
    """Merge the files that exist; return the reasons for those that are missing or empty."""
    merged = Kubeconfig()
    reasons: list[str] = []
    problems = Problems()
    for file in dict.fromkeys(files):
        try:
            kubeconfig = read_kubeconfig(file)
        except MissingError as exc:
            reasons.append(f"{file!r} ({exc})")
            continue
        except ConfigError as exc:
            problems.add(exc)
            continue
        merged = merged.merge(kubeconfig)
        if kubeconfig.is_empty:
            reasons.append(f"{file!r} (is empty)")
    problems.raise_if_any()
    return merged, reasons


@final
class _Variables:
    """The environment variables; ``repr()`` does not show them, other programs' credentials are among them."""

    __slots__ = ("_environ",)

    def __init__(self, environ: Mapping[str, str] | None) -> None:
        self._environ = os.environ if environ is None else environ

    def get(self, name: str) -> str:
        """Return a variable, or an empty string."""
        return self._environ.get(name) or ""


@final
class _Pod:
    """The environment variables and the service account of the pod that the program may run in."""

    __slots__ = ("_ca_file", "_namespace_file", "_token_file", "_variables")

    def __init__(self, variables: _Variables, directory: str) -> None:
        self._variables = variables
        self._token_file = os.path.join(directory, "token")
        self._ca_file = os.path.join(directory, "ca.crt")
        self._namespace_file = os.path.join(directory, "namespace")

    def problem(self) -> str | None:
        """Return why there is no in-cluster configuration, or None."""
        for variable in _SERVICE:
            if not self._variables.get(variable):
                return f"${variable} is not set"
        # What is there but is no regular file is an error of load().
        if os.path.isdir(self._token_file) or not os.path.exists(self._token_file):
            return f"{self._token_file!r} does not exist"
        return None

    def load(self) -> ClusterConfig:
        host, port = (self._variables.get(variable) for variable in _SERVICE)
        bracketed = f"[{host}]" if ":" in host and not host.startswith("[") else host
        try:
            server = parse_server(f"https://{bracketed}:{port}")
        except CheckError as exc:
            raise ConfigError(
                f"{host!r} and {port!r} are not a valid URL", key=" and ".join(f"${v}" for v in _SERVICE)
            ) from exc
        token = self._token()
        return ClusterConfig(
            server=server,
            namespace=self._namespace(),
            ca_file=self._ca(),
            token=token.reveal(),
            token_file=os.path.abspath(self._token_file),
            source="in-cluster",
            in_cluster=True,
        )

    def _token(self) -> Secret[str]:
        try:
            return read_token(self._token_file)
        except CheckError as exc:
            problem = str(exc)
        raise ConfigError(problem, file=self._token_file)

    def default_namespace(self) -> str:
        """Return the namespace of a context that has none."""
        return "default" if self.problem() else self._namespace()

    def _ca(self) -> str | None:
        try:
            check_certificates(read_file(self._ca_file).reveal())
        except MissingError:
            _log.warning("%s does not exist: trusting the system's certificate authorities", self._ca_file)
            return None
        except CheckError as exc:
            problem = str(exc)
        else:
            return os.path.abspath(self._ca_file)
        raise ConfigError(problem, file=self._ca_file)

    def _namespace(self) -> str:
        from_environ = self._variables.get("POD_NAMESPACE")
        if from_environ:
            try:
                check_namespace(from_environ)
            except CheckError as exc:
                raise ConfigError(str(exc), key="$POD_NAMESPACE") from exc
            return from_environ
        try:
            from_file = Secret(read_file(self._namespace_file).reveal().decode("latin-1").strip())
        except CheckError:  # client-go too treats every error as an absent file
            return "default"
        try:
            check_namespace(from_file.reveal() or "default")
        except CheckError:
            # The file may be another one, such as the token.
            problem = "contains no namespace (lower-case letters, digits and '-', at most 63)"
        else:
            return from_file.reveal() or "default"
        raise ConfigError(problem, file=self._namespace_file)

"""The service account of the pod that the program runs in (client-go's ``rest.InClusterConfig``)."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Final, final

from .._secret import Secret
from ..errors import ConfigError
from ._checks import CheckError, MissingError, check_namespace, parse_server, read_file, read_token
from ._config import ClusterConfig
from ._overrides import ConfigOverrides

_log = logging.getLogger("trioformer.kubeconfig")

SERVICE_ACCOUNT_DIRECTORY: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""The directory of a pod's service account: ``token``, ``ca.crt`` and ``namespace``."""

_SERVICE = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")


@final
class Variables:
    """The environment variables; ``repr()`` does not show them, other programs' credentials are among them."""

    __slots__ = ("_environ",)

    def __init__(self, environ: Mapping[str, str] | None) -> None:
        self._environ = os.environ if environ is None else environ

    def get(self, name: str) -> str:
        """Return a variable, or an empty string."""
        return self._environ.get(name) or ""


@final
class Pod:
    """The environment variables and the service account of the pod that the program may run in."""

    __slots__ = ("_ca_file", "_namespace_file", "_token_file", "_variables")

    def __init__(self, variables: Variables, directory: str) -> None:
        self._variables = variables
        self._token_file = os.path.join(directory, "token")
        self._ca_file = os.path.join(directory, "ca.crt")
        self._namespace_file = os.path.join(directory, "namespace")

    def problem(self) -> str | None:
        """Return why there is no in-cluster configuration, or None."""
        for variable in _SERVICE:
            if not self._variables.get(variable):
                return f"${variable} is not set"
        if os.path.isdir(self._token_file) or not os.path.exists(self._token_file):
            return f"{self._token_file!r} does not exist"
        return None

    def load(self, overrides: ConfigOverrides | None = None) -> ClusterConfig:
        """Load the service account, and replace parts of it.

        Raises:
            ConfigError: A file or the server's address is not valid, or what replaces a part is not.
        """
        config = self._load()
        if overrides is None:
            return config
        # Imported when it is needed, as by load_config().
        from ._resolve import replace_parts  # noqa: PLC0415

        return replace_parts(config, overrides)

    def _load(self) -> ClusterConfig:
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
            read_file(self._ca_file)
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

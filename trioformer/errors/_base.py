"""The base class of all errors, and the errors of configurations, connections and limits."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from .._text import one_line

__all__ = [
    "CRDInstallError",
    "CommandFailedError",
    "ConfigError",
    "ConfigProblem",
    "ConnectionFailedError",
    "CopyFailedError",
    "DecodeError",
    "ExecPluginError",
    "LimitExceededError",
    "ListenError",
    "PortForwardError",
    "ProxyError",
    "SchemaError",
    "SelectorError",
    "TrioformerError",
    "UnexpectedResponseError",
]


class TrioformerError(Exception):
    """The base class of all exceptions from trioformer.

    The text is always a single line of at most 4,000 printable characters.  Control characters, terminal escape
    sequences, line endings and bidirectional controls that come from a server or a tenant are escaped or replaced.
    """

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))

    @property
    def message(self) -> str:
        """The text as one line."""
        return str(self.args[0])

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Callable[..., TrioformerError], tuple[type[TrioformerError], str, dict[str, object]]]:
        return _rebuild, (type(self), self.message, dict(self.__dict__))


def _rebuild(cls: type[TrioformerError], message: str, state: dict[str, object]) -> TrioformerError:
    """Copy or unpickle an error without calling its constructor."""
    error = cls.__new__(cls)
    error.args = (message,)
    for name, value in state.items():
        setattr(error, name, value)
    return error


def add_request_id(error: TrioformerError, request_id: str) -> None:
    """Add a note with the server's request ID to an error, if the ID is known."""
    if request_id:
        error.add_note(f"request ID (in the server's audit log): {request_id}")


@attrs.frozen
class ConfigProblem:
    """One problem in a configuration. ``str()`` returns a line with the file, the key and the message."""

    message: str
    """The problem, without secrets."""
    file: str | None = None
    """The file; None if the problem is not in a single file."""
    key: str | None = None
    """The key in the file, such as ``users[dev].user.token``, or None."""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.key, self.message) if part)


class ConfigError(TrioformerError):
    """The configuration is missing, invalid or not supported.

    Attributes:
        file: The file with the problem, or None if the problem is not in a single file.
        key: The key in the file, such as ``users[dev].user.token``, or None if there are several problems.
        problems: All problems, each a :class:`ConfigProblem`. The text of the error may omit some of them.
    """

    def __init__(self, message: str, *, file: str | None = None, key: str | None = None) -> None:
        self.problems: tuple[ConfigProblem, ...] = (ConfigProblem(message, file, key),)
        super().__init__(str(self.problems[0]))
        self.file = file
        self.key = key


class SelectorError(TrioformerError, ValueError):
    """A label or field selector does not follow the grammar."""


class SchemaError(TrioformerError, TypeError):
    """A class does not describe a valid CustomResourceDefinition.

    Attributes:
        cls: The name of the class.
        field: The name of the field, or None if the class itself is wrong.
        file: The file that defines the class, or None if unknown.
        line: The line of the field or the class, counted from 1, or None if unknown.
    """

    def __init__(
        self, message: str, *, cls: type[object], field: str | None, file: str | None = None, line: int | None = None
    ) -> None:
        where = [cls.__name__ if field is None else f"{cls.__name__}.{field}"]
        if file is not None:
            where.insert(0, file if line is None else f"{file}:{line}")
        super().__init__(": ".join((*where, message)))
        self.cls: str = cls.__name__
        self.field = field
        self.file = file
        self.line = line


class CRDInstallError(TrioformerError):
    """A CustomResourceDefinition conflicts with the definitions or objects on the server.

    Attributes:
        name: The name of the definition, such as ``websites.example.com``.
    """

    def __init__(self, message: str, *, name: str) -> None:
        super().__init__(message)
        self.name = name


class DecodeError(TrioformerError, ValueError):
    """Data is not valid JSON, or does not match the required type.

    Objects are decoded when an attribute is first read, so reading an attribute may raise this error. This class is not
    an ``AttributeError``, because ``hasattr`` would hide the error.
    """


class ConnectionFailedError(TrioformerError):
    """No complete response was received, for example because of a connection reset, a timeout or a TLS failure.

    Attributes:
        refused: Whether the connection was refused. If so, the server has not received the request.
        permanent: Whether retries cannot succeed, for example because a certificate cannot be verified.
        partial: Whether part of the response had arrived.
    """

    def __init__(self, message: str, *, refused: bool = False, permanent: bool = False, partial: bool = False) -> None:
        super().__init__(message)
        self.refused = refused
        self.permanent = permanent
        self.partial = partial


class ExecPluginError(ConnectionFailedError):
    """A credential plugin did not return a credential, so the request was not sent.

    The request is retried as after any other connection failure, because the user may log in later. The error is
    ``permanent`` if the plugin is not installed, is not allowed, uses another API version, or requires a terminal.
    """


class ProxyError(ConnectionFailedError):
    """The proxy did not connect to the server, so the server has not received the request.

    The text names the proxy, without its credentials, and the setting that selects it.

    Attributes:
        refused: Whether the proxy refused the connection.
        permanent: Whether retries cannot succeed. This is the case if the proxy rejects the credentials or the server,
            if the proxy's certificate cannot be verified, or if the proxy has another type.
    """


class CommandFailedError(TrioformerError):
    """A command in a container exited with a code other than 0.

    Attributes:
        exit_code: The exit code.
        stdout: The standard output of the command, as bytes.
        stderr: The standard error of the command, as bytes. The text of the exception contains the end of this output.
    """

    def __init__(self, message: str, *, exit_code: int, stdout: bytes = b"", stderr: bytes = b"") -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.stdout = stdout
        self.stderr = stderr


class CopyFailedError(TrioformerError):
    """Files were not copied to or from a container.

    For example, tar failed or is missing, the archive was rejected, or a local file cannot be read or written.
    """


class ListenError(TrioformerError, OSError):
    """Listening on a local port failed.

    The attribute ``errno`` contains the reason. For example, the port is in use, or the program lacks the permission.
    """

    def __init__(self, message: str, *, errno: int | None = None) -> None:
        super().__init__(message)
        self.errno = errno

    def __reduce__(self) -> tuple[Callable[..., TrioformerError], tuple[type[TrioformerError], str, dict[str, object]]]:
        rebuild, (cls, message, state) = super().__reduce__()
        return rebuild, (cls, message, {**state, "errno": self.errno})  # errno is not in __dict__


class PortForwardError(TrioformerError):
    """A port cannot be forwarded, for example because no pod is running or nothing listens on the port."""


class LimitExceededError(TrioformerError):
    """A response or the output of a command exceeded a limit.

    ``limit`` is the name of the limit: a field of :class:`~trioformer.transport.Limits`, or ``max_output_bytes``.
    """

    def __init__(self, message: str, *, limit: str) -> None:
        super().__init__(message)
        self.limit = limit


class UnexpectedResponseError(TrioformerError):
    """A successful response or a redirect, such as a login page, cannot be from a Kubernetes API server.

    For every response with code 400 or above, a :class:`StatusError` is raised instead.

    Attributes:
        code: The HTTP status code of the response.
        request_id: The server's ID of the request, as in :class:`StatusError`.
    """

    def __init__(self, message: str, *, code: int, request_id: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.request_id = request_id
        add_request_id(self, request_id)

"""The base of all errors, and the errors before a server rejects a request: configuration, connection, limits."""

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
    """The base of trioformer's exceptions.

    The text is always a single line of at most 4,000 printable characters.  Control characters, terminal escapes, line
    ends and bidirectional controls from a server or a tenant are escaped or replaced.
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
    """Copy or unpickle an error without the arguments of its constructor."""
    error = cls.__new__(cls)
    error.args = (message,)
    for name, value in state.items():
        setattr(error, name, value)
    return error


def add_request_id(error: TrioformerError, request_id: str) -> None:
    """Add a note with the server's request ID, if any, to an error."""
    if request_id:
        error.add_note(f"request ID (in the server's audit log): {request_id}")


@attrs.frozen
class ConfigProblem:
    """One problem of a configuration; ``str()`` is a line with file, key and message."""

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
        file: The file with the problem; None if it is not in a single file.
        key: The key in the file, such as ``users[dev].user.token``; None if there are several problems.
        problems: All problems, each a :class:`ConfigProblem`; the text may be cut.
    """

    def __init__(self, message: str, *, file: str | None = None, key: str | None = None) -> None:
        self.problems: tuple[ConfigProblem, ...] = (ConfigProblem(message, file, key),)
        super().__init__(str(self.problems[0]))
        self.file = file
        self.key = key


class SelectorError(TrioformerError, ValueError):
    """A label or field selector does not follow the grammar."""


class SchemaError(TrioformerError, TypeError):
    """A class does not describe a CustomResourceDefinition that a server would accept.

    Attributes:
        cls: The name of the class.
        field: The name of its field; None if the class itself is wrong.
        file: The file that defines the class; None if unknown.
        line: The line of the field or the class, counted from 1, or None.
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
    """Bytes are not the JSON that a type requires.

    Objects are decoded when an attribute is first read, so reading an attribute may raise this.
    It is not an ``AttributeError``, which ``hasattr`` would hide.
    """


class ConnectionFailedError(TrioformerError):
    """No complete response arrived: connection refused or reset, timeout, TLS failure, or a stream that ended early.

    Attributes:
        refused: Whether nothing listens at the address; if so, the server has not received the request.
        permanent: Whether a retry cannot succeed, for example because a certificate does not verify.
        partial: Whether a part of the response has arrived.
    """

    def __init__(self, message: str, *, refused: bool = False, permanent: bool = False, partial: bool = False) -> None:
        super().__init__(message)
        self.refused = refused
        self.permanent = permanent
        self.partial = partial


class ExecPluginError(ConnectionFailedError):
    """A credential plugin did not return a credential, so the request was not sent.

    It is retried like every other connection failure: the user may log in meanwhile.
    It is ``permanent`` if the plugin is not installed, is not allowed, has another version, or needs a terminal.
    """


class ProxyError(ConnectionFailedError):
    """The proxy did not connect to the server; the server has not received the request.

    The text names the proxy, without its credentials, and its setting.

    Attributes:
        refused: Whether nothing listens at the address of the proxy.
        permanent: Whether a retry cannot succeed: the proxy rejects the credentials in its URL or connections to this
            server, its certificate does not verify, or it is not a proxy of this type.
    """


class CommandFailedError(TrioformerError):
    """A command in a container exited with a code other than 0.

    Attributes:
        exit_code: The exit code.
        stdout: The bytes of its standard output.
        stderr: The bytes of its standard error; the text contains the end of them.
    """

    def __init__(self, message: str, *, exit_code: int, stdout: bytes = b"", stderr: bytes = b"") -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.stdout = stdout
        self.stderr = stderr


class CopyFailedError(TrioformerError):
    """Files were not copied to or from a container.

    tar failed or is missing, its archive is not acceptable, or a local file cannot be read or written.
    """


class ListenError(TrioformerError, OSError):
    """Listening on a port failed; see ``errno``.  It may be in use, or the program may lack the permission."""

    def __init__(self, message: str, *, errno: int | None = None) -> None:
        super().__init__(message)
        self.errno = errno

    def __reduce__(self) -> tuple[Callable[..., TrioformerError], tuple[type[TrioformerError], str, dict[str, object]]]:
        rebuild, (cls, message, state) = super().__reduce__()
        return rebuild, (cls, message, {**state, "errno": self.errno})  # errno is not in __dict__


class PortForwardError(TrioformerError):
    """A port cannot be forwarded: no pod runs, there is no such port, or nothing in the pod listens on it."""


class LimitExceededError(TrioformerError):
    """The server exceeded a limit of :class:`~trioformer.transport.Limits`; ``limit`` is the name of the field."""

    def __init__(self, message: str, *, limit: str) -> None:
        super().__init__(message)
        self.limit = limit


class UnexpectedResponseError(TrioformerError):
    """The response is a success or a redirect, but cannot be from a Kubernetes API server; for example a login page.

    Every response with code 400 or above is a :class:`StatusError`.

    Attributes:
        code: The HTTP status code of the response.
        request_id: The server's ID of the request, as for :class:`StatusError`.
    """

    def __init__(self, message: str, *, code: int, request_id: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.request_id = request_id
        add_request_id(self, request_id)

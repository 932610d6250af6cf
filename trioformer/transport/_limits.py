"""Limits of what a server may send, far above what a cluster sends."""

from __future__ import annotations

from typing import Final, final

import attrs

from ..errors import LimitExceededError

MIB: Final = 1024 * 1024


def _check_count(_: object, attribute: attrs.Attribute[int], value: int) -> None:
    if type(value) is not int or value < 1:
        raise ValueError(f"Limits.{attribute.name} must be a positive int, not {value!r}")


def _count(default: int) -> int:
    return attrs.field(default=default, validator=_check_count)


@final
@attrs.frozen(kw_only=True)
class Limits:
    """Limits of what a server may send; what exceeds one raises :class:`~trioformer.errors.LimitExceededError`.

    A program that needs more raises a limit::

        from trioformer.transport import Limits

        async with open_client(limits=Limits(object_bytes=64 * 1024**2)) as client:
            ...

    Raises:
        ValueError: A value is not a positive int.
    """

    object_bytes: int = _count(16 * MIB)
    """Bytes of a complete response, such as one object, and of one event of a watch; lists have no limit.

    etcd refuses requests of more than 1.5 MiB unless it is configured otherwise, and a byte there can be six bytes of
    JSON: kube-apiserver writes ``<`` as ``\\u003c``.
    client-go reads 16 MiB of an event too.
    """
    log_bytes: int = _count(256 * MIB)
    """Bytes of the log of a container that is read as a whole; a log that is followed has none.

    A node keeps 10 MiB of a log in one file, unless it is configured otherwise.
    """
    header_bytes: int = _count(64 * 1024)
    """Bytes of the status line and the headers of a response, and of the trailers after a body.

    nginx allows 8 KiB by default.
    """


DEFAULT_LIMITS: Final = Limits()


def check_limits(limits: object) -> None:
    """Check the type of the limits that a program has given.

    Raises:
        TypeError: They are a dictionary, for example.
    """
    if not isinstance(limits, Limits):
        name = type(limits).__name__
        raise TypeError(f"limits must be Limits(...) of trioformer.transport, not an object of {name}")


class LimitPassedError(Exception):
    """A limit is exceeded below httpx, where the name of the server is not known; becomes a LimitExceededError.

    Attributes:
        limit: The name of the field of :class:`Limits`.
        value: Its value.
        what: What has exceeded it.
    """

    def __init__(self, limit: str, value: int, what: str) -> None:
        super().__init__(what)
        self.limit: str = limit
        self.value: int = value
        self.what: str = what


def limit_error(where: str, limit: str, value: int, what: str) -> LimitExceededError:
    """Make the error for a limit that is exceeded.

    Args:
        where: The server or the operation.
        limit: The name of the field of :class:`Limits`.
        value: Its value.
        what: What has exceeded it.
    """
    advice = f"if the server is right, raise it: open_client(..., limits=Limits({limit}=…))"
    prefix = f"{where}: " if where else ""
    return LimitExceededError(f"{prefix}{what}, more than Limits.{limit} ({value}); {advice}", limit=limit)

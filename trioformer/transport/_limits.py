"""Limits of what a server may send, far above what a cluster sends."""

from __future__ import annotations

from typing import Final, final

import attrs
from attrs import validators

from ..errors import LimitExceededError

MIB: Final = 1024 * 1024


def _count(default: int) -> int:
    return attrs.field(default=default, validator=validators.ge(1))


@final
@attrs.frozen(kw_only=True)
class Limits:
    """Limits of what a server may send; what exceeds one raises :class:`~trioformer.errors.LimitExceededError`.

    A program that needs more raises a limit::

        from trioformer.transport import Limits

        async with open_client(limits=Limits(object_bytes=64 * 1024**2)) as client:
            ...

    Raises:
        ValueError: A value is not positive.
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


def limit_error(where: str, limit: str, value: int, what: str) -> LimitExceededError:
    """Make the error for a field of :class:`Limits` that is exceeded; ``where`` is the server or the operation."""
    advice = f"if the server is right, raise it: open_client(..., limits=Limits({limit}=…))"
    return LimitExceededError(f"{where}: {what}, more than Limits.{limit} ({value}); {advice}", limit=limit)

"""Limits on the size of a server's responses, far above the usual sizes."""

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
    """Limits on the size of a server's responses.

    A larger response raises :class:`~trioformer.errors.LimitExceededError`.

    To raise a limit::

        from trioformer import ClientOptions
        from trioformer.transport import Limits

        options = ClientOptions(limits=Limits(object_bytes=64 * 1024**2))
        async with open_client(options=options) as client:
            ...

    Raises:
        ValueError: A value is not positive.
    """

    object_bytes: int = _count(16 * MIB)
    """The maximum size of a complete response, such as one object, and of a watch event, in bytes; lists are unlimited.

    By default, etcd refuses requests of more than 1.5 MiB.  One byte in etcd can be six bytes of JSON: kube-apiserver
    writes ``<`` as ``\\u003c``.
    client-go also limits an event to 16 MiB.
    """
    log_bytes: int = _count(256 * MIB)
    """The maximum size of a container log that is read as a whole, in bytes; followed logs are unlimited.

    By default, a node keeps 10 MiB of a log in one file.
    """
    header_bytes: int = _count(64 * 1024)
    """The maximum size of the status line and headers of a response, and of the trailers after a body, in bytes.

    nginx allows 8 KiB by default.
    """


DEFAULT_LIMITS: Final = Limits()


def limit_error(where: str, limit: str, value: int, what: str) -> LimitExceededError:
    """Return the error for an exceeded limit. ``where`` names the server or the operation."""
    advice = f"if the response is correct, raise the limit: ClientOptions(limits=Limits({limit}=…))"
    return LimitExceededError(f"{where}: {what} (the limit is Limits.{limit}={value}); {advice}", limit=limit)

"""The HTTP options of a manager: :class:`HTTPOptions`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from os import PathLike
from typing import TypeAlias, final

import attrs

from .._listeners import is_token, split_address
from .._secret import Secret, conceal

TokenCheck: TypeAlias = Callable[[str], Awaitable[bool]]
"""Returns whether a bearer token may read the metrics; called with the token of a request.

Its result is kept for 10 seconds.  It must return within 5 seconds, and at most 8 calls run at once; other requests get
a 503.
"""


def _conceal_token(token: str | Secret[str] | None) -> Secret[str] | None:
    return None if token is None else conceal(token)


@final
@attrs.frozen
class HTTPOptions:
    """Options of the HTTP server for health, readiness and metrics, for :func:`run_controllers`.

    By default it serves plain HTTP without authentication, as the probes of a kubelet expect.

    Raises:
        ValueError: ``bind`` is not ``host:port``; only one of ``certificate`` and ``key`` is given; a token and a check
            are both given; or the token is not valid.
    """

    bind: str
    """``host:port`` to listen on; ``:port`` for all interfaces, and port 0 for a free one."""
    certificate: str | PathLike[str] | None = attrs.field(default=None, kw_only=True)
    """A PEM file with the server's certificate chain; with it the port speaks TLS only.  It is read at the start."""
    key: str | PathLike[str] | None = attrs.field(default=None, kw_only=True)
    """A PEM file with the certificate's key."""
    metrics_token: Secret[str] | None = attrs.field(default=None, kw_only=True, converter=_conceal_token, repr=False)
    """The bearer token that a request for ``/metrics`` must have, a str; None for no authentication."""
    check_metrics_token: TokenCheck | None = attrs.field(default=None, kw_only=True)
    """Decides instead of ``metrics_token``, for example by a TokenReview and a SubjectAccessReview.

    Any request to the port can call it, so use a separate client with a ``rate_limiter``.
    """

    def __attrs_post_init__(self) -> None:
        split_address(self.bind)
        if (self.certificate is None) != (self.key is None):
            raise ValueError("HTTPOptions: TLS needs both certificate= and key=")
        if self.metrics_token is not None and self.check_metrics_token is not None:
            raise ValueError("HTTPOptions: pass metrics_token= or check_metrics_token=, not both")
        if self.metrics_token is not None and not is_token(self.metrics_token):
            raise ValueError("HTTPOptions: metrics_token= must be printable ASCII characters without white space")

"""The HTTP options of a manager: :class:`HTTPOptions`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from os import PathLike
from typing import TypeAlias, final

import attrs

from .._listeners import is_token, split_address
from .._secret import Secret, conceal

TokenCheck: TypeAlias = Callable[[str], Awaitable[bool]]
"""An async function that receives the bearer token of a request, and returns whether the token may read the metrics.

The result is kept for 10 seconds.  The function must return within 5 seconds.  At most 8 calls run concurrently, and
further
requests receive a response with status 503.
"""


def _conceal_token(token: str | Secret[str] | None) -> Secret[str] | None:
    return None if token is None else conceal(token)


@final
@attrs.frozen
class HTTPOptions:
    """Options for the HTTP server of :func:`run_controllers`, which serves health, readiness and metrics.

    By default, the server uses plain HTTP without authentication, as the kubelet's probes do.

    Raises:
        ValueError: ``bind`` is not of the form ``host:port``, only one of ``certificate`` and ``key`` is given,
            ``metrics_token`` and ``check_metrics_token`` are both given, or the token is not valid.
    """

    bind: str
    """The address to listen on, as ``host:port``.  Use ``:port`` to listen on all interfaces, and port 0 to listen on
    a free port."""
    certificate: str | PathLike[str] | None = attrs.field(default=None, kw_only=True)
    """A PEM file with the certificate chain of the server.  If a certificate is given, the server accepts only TLS.

    New connections use a rotated certificate.  Until the certificate and the key belong together, the previous
    certificate stays in use."""
    key: str | PathLike[str] | None = attrs.field(default=None, kw_only=True)
    """A PEM file with the private key of the certificate."""
    metrics_token: Secret[str] | None = attrs.field(default=None, kw_only=True, converter=_conceal_token, repr=False)
    """The bearer token, a str, that a request for ``/metrics`` or ``/journal`` must contain.  If None, there is no
    authentication for the metrics, and no journal is served unless ``check_metrics_token`` is given."""
    check_metrics_token: TokenCheck | None = attrs.field(default=None, kw_only=True)
    """A function that checks bearer tokens instead of ``metrics_token``, for example with a TokenReview and a
    SubjectAccessReview.

    Each request to the port may result in a call, so use a separate client with a ``rate_limiter`` in this function.
    """

    def __attrs_post_init__(self) -> None:
        split_address(self.bind)
        if (self.certificate is None) != (self.key is None):
            raise ValueError("HTTPOptions: TLS needs both certificate= and key=")
        if self.metrics_token is not None and self.check_metrics_token is not None:
            raise ValueError("HTTPOptions: pass metrics_token= or check_metrics_token=, not both")
        if self.metrics_token is not None and not is_token(self.metrics_token):
            raise ValueError("HTTPOptions: metrics_token= must be printable ASCII characters without white space")

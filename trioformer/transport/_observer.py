"""The interface of request metrics."""

from __future__ import annotations

from typing import Protocol


class RequestObserver(Protocol):
    """Observes each attempt of each request once, for metrics.

    The task that sent the request makes the call, so it must be quick.
    It must not raise: the request would raise that exception instead of returning its response.

    It provides the metrics of client-go (``tools/metrics/metrics.go``): ``rest_client_requests_total``,
    ``rest_client_request_retries_total`` and, without watches, ``rest_client_request_duration_seconds`` and
    ``rest_client_rate_limiter_duration_seconds``.
    """

    def ended(
        self,
        *,
        method: str,
        host: str,
        code: int | None,
        duration: float,
        throttled: float | None,
        for_watch: bool,
        attempt: int,
    ) -> None:
        """Record an attempt that has a response, or has failed.

        Args:
            method: Such as ``GET``.
            host: The server's host, with the port if the URL has one.
            code: The HTTP status code; None without a response: the connection failed, or the caller was cancelled.
            duration: Seconds until the response was complete; for lists and watches, which are streamed, until it
                began.  The time before the request is sent does not count.
            throttled: Seconds before that for which ``qps`` delayed the request; None if there is no such limit.
            for_watch: Whether it is a watch.
            attempt: 1 for the first attempt; higher if the request was sent again.
        """
        ...

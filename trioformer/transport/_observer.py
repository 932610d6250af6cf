"""Whom a transport tells of its requests."""

from __future__ import annotations

from typing import Protocol


class RequestObserver(Protocol):
    """Is told of every request once, for metrics.

    The call comes from the task that has sent the request, so it must be quick.
    It must not raise: the exception would leave the request in the place of its answer.

    The metrics of client-go (``tools/metrics/metrics.go``) come from it: ``rest_client_requests_total``; and, watches
    left out, ``rest_client_request_duration_seconds`` and ``rest_client_rate_limiter_duration_seconds``.
    """

    def ended(
        self, *, method: str, host: str, code: int | None, lasted: float, throttled: float | None, for_watch: bool
    ) -> None:
        """Note that a request was answered, or that no answer will come.

        Args:
            method: Such as ``GET``.
            host: The server's, with its port where the address names one.
            code: The HTTP status code; None without an answer: the connection failed, or the caller did not wait.
            lasted: Seconds until the answer had come; until it began, for lists and watches, which are read as they
                come.  Waiting to be sent does not count.
            throttled: Seconds before that for which ``qps`` has held it back; None where there is no such limit.
            for_watch: Whether the answer is a watch.
        """
        ...

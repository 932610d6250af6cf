"""Fault injection: matching requests fail, or their responses are delayed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, final

import attrs

from .._storage._status import APIStatusError, status_error
from ._requests import RequestRecord

StatusChooser: TypeAlias = Callable[[RequestRecord], int | None]
"""A function that returns the HTTP status code for a request, or None if the request does not match."""


@final
@attrs.define(eq=False)
class Fault:
    """An injected fault that affects a number of matching requests."""

    remaining: int
    verb: str | None
    resource: str | None
    status: int | StatusChooser | None
    retry_after: int | None
    after: float
    """How many seconds the response is delayed."""
    body: Mapping[str, object] | None
    """The Status of the response, or None for the default Status."""

    def error_for(self, record: RequestRecord) -> APIStatusError | bool | None:
        """Return the error for a request, None if there is only a delay, or False if the fault does not match."""
        names = (record.resource, f"{record.resource}.{record.group}" if record.group else record.resource)
        if self.verb not in (None, record.verb) or (self.resource is not None and self.resource not in names):
            return False
        if self.status is None:
            return None
        code = self.status(record) if callable(self.status) else self.status
        if code is None:
            return False
        error = status_error(code, retry_after=self.retry_after)
        if self.body is not None:
            error.status |= self.body
        return error


@final
@attrs.define(eq=False)
class Faults:
    """The injected faults.  The oldest fault that matches a request is used."""

    _faults: list[Fault] = attrs.field(factory=list)

    def add(self, fault: Fault) -> None:
        """Add a fault for the next matching requests."""
        if fault.remaining < 1:
            raise ValueError(f"n must be at least 1, not {fault.remaining}")
        if isinstance(fault.status, int) and not 400 <= fault.status <= 599:
            raise ValueError(f"status must be an HTTP error code from 400 to 599, not {fault.status}")
        if not fault.after >= 0:
            raise ValueError(f"after= must be at least 0 seconds, not {fault.after}")
        self._faults.append(fault)

    @property
    def pending(self) -> int:
        """The number of further requests that the faults will affect."""
        return sum(fault.remaining for fault in self._faults)

    def take(self, record: RequestRecord) -> tuple[float, APIStatusError | None]:
        """Return the seconds by which to delay a request, and the error to respond with, or None."""
        for fault in self._faults:
            error = fault.error_for(record)
            if isinstance(error, bool):
                continue
            fault.remaining -= 1
            if not fault.remaining:
                self._faults.remove(fault)
            return fault.after, error
        return 0.0, None

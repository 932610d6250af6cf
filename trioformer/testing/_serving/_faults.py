"""Fault injection: the next matching requests fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final

import attrs

from .._storage._status import status_error
from ._requests import RequestRecord

StatusChooser: TypeAlias = Callable[[RequestRecord], int | None]
"""Returns the HTTP code with which a request fails, or None when it does not fail."""


@final
@attrs.define(eq=False)
class _Fault:
    """A fault for a number of matching requests."""

    remaining: int
    verb: str | None
    resource: str | None
    status: int | StatusChooser
    retry_after: int | None

    def code_for(self, record: RequestRecord) -> int | None:
        """Return the code with which a request fails, or None."""
        names = (record.resource, f"{record.resource}.{record.group}" if record.group else record.resource)
        if self.verb not in (None, record.verb) or (self.resource is not None and self.resource not in names):
            return None
        return self.status(record) if callable(self.status) else self.status


@final
@attrs.define(eq=False)
class Faults:
    """The injected faults; the oldest that matches a request applies."""

    _faults: list[_Fault] = attrs.field(factory=list)

    def add(
        self, n: int, *, verb: str | None, resource: str | None, status: int | StatusChooser, retry_after: int | None
    ) -> None:
        """Let the next ``n`` matching requests fail."""
        if n < 1:
            raise ValueError(f"n must be at least 1, not {n}")
        if isinstance(status, int) and not 400 <= status <= 599:
            raise ValueError(f"status must be an HTTP error code from 400 to 599, not {status}")
        self._faults.append(_Fault(n, verb, resource, status, retry_after))

    @property
    def pending(self) -> int:
        """The number of requests that are still to fail."""
        return sum(fault.remaining for fault in self._faults)

    def check(self, record: RequestRecord) -> None:
        """Raise the injected failure of a request, if there is one.

        Raises:
            APIStatusError: A fault matches the request.
        """
        for fault in self._faults:
            code = fault.code_for(record)
            if code is None:
                continue
            fault.remaining -= 1
            if not fault.remaining:
                self._faults.remove(fault)
            raise status_error(code, retry_after=fault.retry_after)

"""Faults that a test orders: the next requests fail, the open watches end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final

import attrs

from .._storage._status import RefusedError, refusal
from ._requests import RequestRecord

StatusChooser: TypeAlias = Callable[[RequestRecord], int | None]
"""Looks at a request and returns the HTTP code to fail it with, or None to let it pass."""


@final
@attrs.define(eq=False)
class _Fault:
    """An order that is not carried out yet."""

    remaining: int
    verb: str | None
    resource: str | None
    status: int | StatusChooser
    retry_after: int | None

    def code_for(self, record: RequestRecord) -> int | None:
        """Return the code to fail this request with, or None."""
        names = (record.resource, f"{record.resource}.{record.group}" if record.group else record.resource)
        if self.verb not in (None, record.verb) or (self.resource is not None and self.resource not in names):
            return None
        return self.status(record) if callable(self.status) else self.status


@final
@attrs.define(eq=False)
class Faults:
    """The orders, first come first served."""

    _orders: list[_Fault] = attrs.field(factory=list)

    def order(
        self, n: int, *, verb: str | None, resource: str | None, status: int | StatusChooser, retry_after: int | None
    ) -> None:
        """Order that the next ``n`` fitting requests fail."""
        if n < 1:
            raise ValueError(f"n must be at least 1, not {n}")
        if isinstance(status, int) and not 400 <= status <= 599:
            raise ValueError(f"status must be an HTTP error code from 400 to 599, not {status}")
        self._orders.append(_Fault(n, verb, resource, status, retry_after))

    @property
    def pending(self) -> int:
        """How many requests are still to fail."""
        return sum(order.remaining for order in self._orders)

    def check(self, record: RequestRecord) -> None:
        """Let a request pass, or fail it.

        Raises:
            RefusedError: It is to fail.
        """
        for order in self._orders:
            code = order.code_for(record)
            if code is None:
                continue
            order.remaining -= 1
            if not order.remaining:
                self._orders.remove(order)
            raise self._refusal(code, order.retry_after)

    @staticmethod
    def _refusal(code: int, retry_after: int | None) -> RefusedError:
        return refusal(code, retry_after=retry_after)

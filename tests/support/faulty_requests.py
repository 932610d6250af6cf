"""A transport between an operator and an API server that lets single requests fail, in every way that there is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import final

import attrs
import httpx
import trio

REASONS = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError"}
PATIENCE = 30.0


@attrs.frozen
class Call:
    """The n-th request of a kind, without generated names."""

    what: str
    number: int

    def __str__(self) -> str:
        return f"{self.what} #{self.number}"


@attrs.frozen
class Fault:
    """A fault of one request."""

    name: str
    code: int = 0
    """The HTTP code of the response; 0 for no response."""
    is_carried_out: bool = False
    """Whether the server has carried out the request."""
    after: float = 0.0
    """Seconds until the caller gets the error."""
    is_deadly: bool = False
    """Whether the operator is killed at this request and started again."""

    def __str__(self) -> str:
        return self.name


FAULTS = (
    Fault("500", 500),
    Fault("409", 409),
    Fault("429", 429),
    Fault("cut before"),
    Fault("cut after", is_carried_out=True),
    Fault("timeout before", after=PATIENCE),
    Fault("timeout after", is_carried_out=True, after=PATIENCE),
    Fault("500 after", 500, is_carried_out=True),
    Fault("death before", is_deadly=True),
    Fault("death after", is_carried_out=True, is_deadly=True),
)


USUAL = ("500", "cut after")
"""The faults that are tested in every run; the others only with ``--long``."""


@final
@attrs.define(eq=False)
class FaultyTransport(httpx.AsyncBaseTransport):
    """Records the requests, and lets some of them fail."""

    inner: httpx.AsyncBaseTransport
    faults: Mapping[Call, Fault] = attrs.field(factory=dict)
    calls: list[Call] = attrs.field(factory=list)
    counts: Counter[str] = attrs.field(factory=Counter)
    operator: trio.CancelScope = attrs.field(factory=trio.CancelScope)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        what = call_of(request)
        self.counts[what] += 1
        call = Call(what, self.counts[what])
        self.calls.append(call)
        if call in self.faults:
            return await self.fail(request, self.faults[call])
        return await self.inner.handle_async_request(request)

    async def fail(self, request: httpx.Request, fault: Fault) -> httpx.Response:
        if fault.is_carried_out:
            response = await self.inner.handle_async_request(request)
            await response.aclose()
        if fault.is_deadly:
            self.operator.cancel()
        await trio.sleep(fault.after)
        if fault.after:
            raise httpx.ReadTimeout("no response")
        if not fault.code:
            raise httpx.ReadError("the connection was cut")
        code, reason = fault.code, REASONS[fault.code]
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
        return httpx.Response(code, json=status | {"message": "injected"}, request=request)


def call_of(request: httpx.Request) -> str:
    path = re.sub(r"/(pods|events)/[^/]+", r"/\1/*", request.url.path)
    return f"{request.method} {path}{' watch' * (request.url.params.get('watch', '') in ('1', 'true'))}"

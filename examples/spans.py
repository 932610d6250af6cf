"""Spans of OpenTelemetry for the calls and requests of a controller.

The tracer is an argument, so that this file does not import OpenTelemetry.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager
from typing import Any

import attrs

from trioformer.controller import Controller, Request, current_request
from trioformer.transport import ObservedRequest

Running = dict[str, tuple[AbstractContextManager[Any], Any]]
"""The managers and spans of the running calls, by ``reconcile_id``."""


@attrs.define(eq=False)
class ReconcileSpans:
    """A ControllerObserver that makes a span for each call to ``reconcile``."""

    tracer: Any
    """The ``opentelemetry.trace.Tracer``."""
    error: object
    """``opentelemetry.trace.StatusCode.ERROR``."""
    controller: Controller[Request] | None = None
    """The controller, which must keep a journal."""
    _running: Running = attrs.field(factory=Running)
    _contexts: OrderedDict[str, Any] = attrs.field(factory=OrderedDict[str, Any])

    def began(self, request: Request) -> None:
        current = current_request()
        assert current is not None
        manager = self.tracer.start_as_current_span(
            f"reconcile {current.controller}", attributes=current.log_fields()
        )
        span = manager.__enter__()  # the requests of this task become its children
        self._running[current.reconcile_id] = manager, span
        self._contexts[current.reconcile_id] = span.get_span_context()
        if len(self._contexts) > 1_000:
            self._contexts.popitem(last=False)

    def ended(self, request: Request, *, result: str, **_: object) -> None:
        current = current_request()
        assert current is not None
        assert self.controller is not None
        manager, span = self._running.pop(current.reconcile_id)
        entries = reversed(self.controller.journal(request))
        entry = next(one for one in entries if one.reconcile_id == current.reconcile_id)
        for cause in entry.causes:
            span.add_event(str(cause))
            if (causing := self._contexts.get(cause.reconcile_id)) is not None:
                span.add_link(causing)
        for write in entry.writes:
            code = write.code or "no response"
            span.add_event(f"{write.method} {write.path}", {"code": code})
        span.set_attribute("result", result)
        if entry.error:
            span.set_status(self.error, entry.error)
        manager.__exit__(None, None, None)


@attrs.define(eq=False)
class RequestSpans:
    """A RequestObserver that makes a span for each request of ``reconcile``."""

    tracer: Any
    """The ``opentelemetry.trace.Tracer``."""
    _spans: dict[ObservedRequest, Any] = attrs.field(factory=dict[ObservedRequest, Any])

    def request_started(self, request: ObservedRequest) -> None:
        if current_request() is not None:  # not a request of an informer, for example
            self._spans[request] = self.tracer.start_span(
                f"{request.method} {request.path}",
                attributes={"url.template": request.path},
            )

    def request_ended(self, request: ObservedRequest) -> None:
        if (span := self._spans.pop(request, None)) is not None:
            span.set_attribute("http.response.status_code", request.code or 0)
            if request.reason:
                span.set_attribute("error.type", request.reason)
            span.end()

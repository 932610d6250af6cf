"""``examples/spans.py`` with a tracer that records spans; OpenTelemetry is not installed here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import attrs
import trio
import trio.testing

from examples.spans import ReconcileSpans, RequestSpans
from trioformer import SharedInformerFactory, open_client
from trioformer.controller import Controller, Request
from trioformer.models import from_dict
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer


@attrs.define(eq=False)
class Span:
    """What the example uses of ``opentelemetry.trace.Span``."""

    name: str
    parent: Span | None
    attributes: dict[str, object]
    events: list[str] = attrs.field(factory=list)
    links: list[Span] = attrs.field(factory=list)
    status: object = None
    is_ended: bool = False

    def get_span_context(self) -> Span:
        return self

    def add_link(self, context: Span) -> None:
        self.links.append(context)

    def add_event(self, name: str, attributes: Mapping[str, object] | None = None) -> None:
        self.events.append(name)

    def set_attribute(self, key: str, value: object) -> None:
        self.attributes[key] = value

    def set_status(self, status: object, description: str) -> None:
        self.status = status

    def end(self) -> None:
        self.is_ended = True


current_span: ContextVar[Span | None] = ContextVar("current_span", default=None)


@attrs.define(eq=False)
class Tracer:
    """What the example uses of ``opentelemetry.trace.Tracer``."""

    spans: list[Span] = attrs.field(factory=list)

    def start_span(self, name: str, *, attributes: Mapping[str, str]) -> Span:
        self.spans.append(Span(name, current_span.get(), dict(attributes)))
        return self.spans[-1]

    @contextmanager
    def start_as_current_span(self, name: str, *, attributes: Mapping[str, str]) -> Iterator[Span]:
        span = self.start_span(name, attributes=attributes)
        token = current_span.set(span)
        yield span
        current_span.reset(token)
        span.end()


async def test_a_call_has_its_causes_its_requests_and_a_link_to_the_call_that_caused_it(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, nursery: trio.Nursery
) -> None:
    tracer = Tracer()
    spans = ReconcileSpans(tracer, "ERROR")
    transport, observer = api_server.http_transport(), RequestSpans(tracer)
    async with open_client(api_server.config, http_transport=transport, observer=observer) as client:
        factory = SharedInformerFactory(client)
        maps = factory.informer(ConfigMap)
        is_broken = True

        async def reconcile(request: Request) -> None:
            nonlocal is_broken
            if is_broken:
                is_broken = False
                raise ValueError("broken")
            if maps.lister[str(request)].metadata.labels.get("seen") is None:
                patch = {"metadata": {"labels": {"seen": "yes"}}}
                await client.api(ConfigMap, namespace="default").patch(request.name, patch)

        controller = Controller("maps", reconcile, journal=True, observer=spans)
        spans.controller = controller
        controller.watch(maps)
        await nursery.start(factory.run)
        await nursery.start(controller.run)
        api_server.create(from_dict(ConfigMap, {"metadata": {"name": "web", "namespace": "default"}}))
        await trio.sleep(60)
        nursery.cancel_scope.cancel()

    failed, wrote, patch, saw = tracer.spans
    assert [span.name for span in (failed, wrote, saw)] == ["reconcile maps"] * 3
    assert all(span.is_ended for span in tracer.spans)
    assert failed.attributes["request"] == "default/web"
    assert failed.status == "ERROR"
    assert failed.events[0].startswith("added configmaps default/web")
    assert wrote.links == [failed]
    assert any("PATCH /api/v1/namespaces/default/configmaps/web" in event for event in wrote.events)
    template = "/api/v1/namespaces/{namespace}/configmaps/{name}"
    assert (patch.name, patch.parent) == (f"PATCH {template}", wrote)
    assert patch.attributes["url.template"] == template
    assert patch.attributes["http.response.status_code"] == 200
    assert saw.links == [wrote]
    assert "metadata.labels" in saw.events[0]
    assert saw.status is None

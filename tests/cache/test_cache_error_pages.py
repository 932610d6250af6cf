"""Informers behind a proxy that responds with pages of HTML."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import httpx
import pytest
import trio
import trio.testing

from tests.support.scripted_http import InMemory, response
from trioformer import SharedInformerFactory
from trioformer.cache import ReflectorOptions
from trioformer.client import open_client
from trioformer.errors import ForbiddenError, ServiceUnavailableError, TooManyRequestsError, UnexpectedResponseError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models.core_v1 import Pod

CONFIG = ClusterConfig(server="http://server.invalid", source="test")
POD = '{"metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"5"}}'
LIST = '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[' + POD + "]}"


def page(code: int, title: str, **headers: str) -> httpx.Response:
    """A page as nginx sends it."""
    body = f"<html>\r\n<head><title>{title}</title></head>\r\n<body></body>\r\n</html>\r\n"
    return response(code, body, content_type="text/html", **headers)


@attrs.define(eq=False)
class Proxy(httpx.AsyncBaseTransport):
    """Records the kind and the time of each request, and responds with what a function returns."""

    respond: Callable[[str, int], httpx.Response]
    """Called with the kind of the request and how many of this kind there were before."""
    seen: list[tuple[str, float]] = attrs.field(factory=list)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        params = request.url.params
        verb = "watch" if "watch" in params else "check" if params.get("limit") == "1" else "list"
        reply = self.respond(verb, len(self.times(verb)))
        self.seen.append((verb, trio.current_time()))
        return await InMemory([reply]).handle_async_request(request)

    def times(self, verb: str) -> list[float]:
        return [at for seen, at in self.seen if seen == verb]


async def test_a_watch_waits_as_long_as_a_429_in_html_says(autojump_clock: trio.testing.MockClock) -> None:
    def respond(verb: str, before: int) -> httpx.Response:
        if verb != "watch":
            return response(200, LIST)
        return page(429, "429 Too Many Requests", retry_after="20") if not before else response(200, None)

    proxy = Proxy(respond)
    errors: list[Exception] = []
    options = ReflectorOptions(watch_list=False, watch_error_handler=errors.append)
    async with open_client(CONFIG, http_transport=proxy) as client, trio.open_nursery() as nursery:
        factory = SharedInformerFactory(client, options=options)
        factory.informer(Pod)
        await nursery.start(factory.run)
        await trio.sleep(100)
        nursery.cancel_scope.cancel()
    assert len(proxy.times("list")) == 1
    first, second = proxy.times("watch")
    assert 20 <= second - first < 25
    (error,) = errors
    assert isinstance(error, TooManyRequestsError)
    assert "may have sent it: 429 Too Many Requests (HTTP 429" in str(error)


@pytest.mark.parametrize("watch_list", [False, True])
async def test_a_403_in_html_before_the_first_sync_ends_the_factory(
    watch_list: bool, autojump_clock: trio.testing.MockClock
) -> None:
    proxy = Proxy(lambda _verb, _before: page(403, "403 Forbidden"))
    options = ReflectorOptions(grace_period=5, watch_list=watch_list)
    async with open_client(CONFIG, http_transport=proxy) as client:
        factory = SharedInformerFactory(client, options=options)
        factory.informer(Pod)
        with pytest.RaisesGroup(pytest.RaisesGroup(pytest.RaisesExc(ForbiddenError, match="the body is HTML"))):
            await factory.run()
    assert trio.current_time() == pytest.approx(5, abs=0.01)


async def test_a_503_in_html_is_retried_and_a_login_page_is_an_error(autojump_clock: trio.testing.MockClock) -> None:
    lists = [page(503, "503 Service Unavailable"), page(200, "Sign in"), response(200, LIST)]
    proxy = Proxy(lambda verb, before: lists[before] if verb == "list" else response(200, None))
    errors: list[Exception] = []
    options = ReflectorOptions(grace_period=0, watch_list=False, watch_error_handler=errors.append)
    async with open_client(CONFIG, http_transport=proxy) as client, trio.open_nursery() as nursery:
        factory = SharedInformerFactory(client, options=options)
        informer = factory.informer(Pod)
        await nursery.start(factory.run)
        assert [obj.name for obj in informer.lister] == ["a"]
        nursery.cancel_scope.cancel()
    assert [type(error) for error in errors] == [ServiceUnavailableError, UnexpectedResponseError]

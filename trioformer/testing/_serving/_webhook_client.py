"""The client with which the server calls webhooks, over TLS or in memory.

Source: client-go ``rest/request.go`` and apimachinery ``pkg/api/errors``, whose words the errors have.
"""

from __future__ import annotations

import base64
import json
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias, TypeVar, final

import attrs
import httpx
import trio

from ..._surroundings import as_operator
from ...errors import DecodeError
from ...models._internal import decode, dumps
from .._storage._registry import Registry
from .._storage._status import REASONS, status_error
from .._storage._storage import JSONObject
from .._storage._webhook_calls import Answer, Answers, Call, CallsNeededError

T = TypeVar("T")
Application: TypeAlias = Callable[..., Awaitable[None]]
"""An ASGI 3 application."""
logger: Final = logging.getLogger("trioformer.testing")

_MOST_AT_ONCE: Final = 16
_MOST_TURNS: Final = 10_000
"""How often one request is handled.  kube-apiserver repeats it until a timeout, which virtual time may never reach.
A request that deletes many objects is handled again after each call."""
_NEVER_DONE: Final = "Timeout: request did not complete within requested timeout - context deadline exceeded"
_HEADERS: Final = {"accept": "application/json, */*", "content-type": "application/json"}


@final
@attrs.define(eq=False)
class WebhookClient:
    """The client of the webhooks of one server."""

    _registry: Registry
    apps: dict[tuple[str, str], Application] = attrs.field(init=False, factory=dict)
    """The ASGI applications of Services in memory, by namespace and name."""

    async def run(self, function: Callable[[Answers], T]) -> T:
        """Call a function again and again, each time as if it were the first time, until it has all answers.

        Raises:
            APIStatusError: The webhooks themselves have changed the object again and again (504).
        """
        registry, answers = self._registry, Answers()
        now, seed = registry.clock(), registry.new_seed()
        for _ in range(_MOST_TURNS):
            try:
                with registry.replaying(now, seed):
                    return function(answers)
            except CallsNeededError as needed:
                calls = needed.calls
            found: dict[int, Answer] = {}
            limit = trio.CapacityLimiter(_MOST_AT_ONCE)
            async with trio.open_nursery() as nursery:
                for index, call in enumerate(calls):
                    nursery.start_soon(self._make, call, limit, found, index)
            for index, call in enumerate(calls):
                call.keep(found[index])
        raise status_error(504, message=_NEVER_DONE, details={})

    async def _make(self, call: Call, limit: trio.CapacityLimiter, found: dict[int, Answer], index: int) -> None:
        """Make a call, and add the review in the response or the reason of the failure to the found answers."""
        uid, service = self._registry.new_uid(), call.client.get("service")
        version, kind = call.review
        body = dumps({"kind": kind, "apiVersion": version, "request": {"uid": uid, **call.request}})
        url = call.client.get("url")
        if service is not None:
            host = f"{service['name']}.{service['namespace']}.svc"
            url = f"https://{host}:{service.get('port', 443)}{service.get('path') or ''}"
        url = f"{url}?timeout={call.timeout}s"
        problem: str | JSONObject = f'Post "{url}": context deadline exceeded'
        async with limit:
            with trio.move_on_after(call.timeout):
                try:
                    problem = _review_in(await self._post(call.client, url, body), call.review)
                except (httpx.TransportError, httpx.InvalidURL) as exc:
                    problem = f'Post "{url}": {_problem_of(exc, url)}'
        found[index] = uid, problem

    async def _post(self, config: Mapping[str, Any], url: str, body: bytes) -> httpx.Response:
        if (service := config.get("service")) is None:
            async with httpx.AsyncClient(verify=_trusting(config), timeout=None, trust_env=False) as client:
                return await client.post(url, content=body, headers=_HEADERS)
        name, namespace = service["name"], service["namespace"]
        if (app := self.apps.get((namespace, name))) is None:
            is_known = self._registry.storage.get("services", f"{namespace}/{name}") is not None
            known = f'service "{name}"'
            raise httpx.ConnectError(f"no endpoints available for {known}" if is_known else f"{known} not found")
        try:
            with as_operator():  # the function is the operator's code
                async with httpx.AsyncClient(transport=httpx.ASGITransport(app), timeout=None) as client:
                    return await client.post(url, content=body, headers=_HEADERS)
        except Exception:  # as servers do
            text = "error in a webhook that the embedded API server called in memory: %s"
            logger.exception(text, httpx.URL(url).path)
            return httpx.Response(500)


def _trusting(config: Mapping[str, Any]) -> ssl.SSLContext:
    """Return a TLS context that trusts the CAs of a ``clientConfig``, or those of the system if it has none."""
    bundle = base64.b64decode(config.get("caBundle") or "").decode("ascii", "replace")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not bundle.strip():
        context.load_default_certs()
    else:
        with suppress(ssl.SSLError, TypeError):  # a bundle that cannot be read, or is not text, trusts nothing
            context.load_verify_locations(cadata=bundle)
    return context


def _problem_of(error: BaseException, url: str) -> str:
    """Return what Go says of a failed connection."""
    each: BaseException | None = error
    while each is not None:
        if isinstance(each, BaseExceptionGroup):
            each = each.exceptions[0]
        if isinstance(each, ssl.SSLCertVerificationError):
            unknown = each.verify_code in (18, 19, 20, 21)
            why = "certificate signed by unknown authority" if unknown else each.verify_message
            return f"tls: failed to verify certificate: x509: {why}"
        if isinstance(each, ConnectionRefusedError):
            address = httpx.URL(url)
            return f"dial tcp {address.host}:{address.port or 443}: connect: connection refused"
        each = each.__cause__ or each.__context__
    return "EOF" if isinstance(error, httpx.RemoteProtocolError) else str(error)


def _review_in(response: httpx.Response, expected: tuple[str, str]) -> JSONObject | str:
    """Return the review in a response, or the reason why there is none."""
    body, code, media_type = response.content, response.status_code, response.headers.get("content-type", "")
    try:
        review: Any = decode(body)
    except DecodeError:
        review = None
    if not 200 <= code <= 206:
        if isinstance(review, dict) and (review.get("kind"), review.get("status")) == ("Status", "Failure"):
            return str(review.get("message"))
        text = body.decode(errors="replace").strip() if media_type.startswith("text/") or not media_type else "unknown"
        if code in (403, 406, 415):
            return text
        if code in REASONS and code != 500:
            return REASONS[code][1]
        if code >= 500:
            return f"an error on the server ({json.dumps(text)}) has prevented the request from succeeding"
        return f"the server responded with the status code {code} but did not return more information"
    if not body:
        return f"0-length response with status code: {code} and content type: {media_type}"
    if not isinstance(review, dict):
        return "couldn't get version/kind; json parse error: the response is not a JSON object"
    version, kind = (
        review.get(name) or default for name, default in zip(("apiVersion", "kind"), expected, strict=True)
    )
    if (version, kind) != expected:
        return f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
    return review

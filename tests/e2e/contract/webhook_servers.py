"""A webhook that an API server calls over TLS on loopback, and configurations for it."""

from __future__ import annotations

import base64
import itertools
import json
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeAlias

import attrs
import trio
import trustme

from trioformer._listeners import open_listener
from trioformer._serving import serve_app
from trioformer.client import Client
from trioformer.errors import InternalServerError

Review: TypeAlias = dict[str, Any]
Answer: TypeAlias = Callable[[Review], Awaitable[Review | tuple[int, str, bytes]]]
"""Answers the ``request`` of a review: with its ``response``, or with a code, a media type and a body."""

CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1"
PROBE: Final = "webhook-probe"
numbers = itertools.count()


def allow(**more: Any) -> Answer:
    """Allow each request, with these fields in the response."""

    async def answer(request: Review) -> Review:
        return {"allowed": True, **more}

    return answer


def deny(**status: Any) -> Answer:
    """Deny each request, with this status."""

    async def answer(request: Review) -> Review:
        return {"allowed": False, **({"status": status} if status else {})}

    return answer


def patch(*operations: dict[str, Any]) -> Answer:
    """Change each object with a JSON patch."""
    encoded = base64.b64encode(json.dumps(operations).encode()).decode()
    return allow(patch=encoded, patchType="JSONPatch")


def raw(code: int, body: bytes, media_type: str = "application/json") -> Answer:
    """Answer each request with this response."""

    async def answer(request: Review) -> tuple[int, str, bytes]:
        return code, media_type, body

    return answer


@attrs.frozen
class Reply:
    """A response of an API server."""

    code: int
    body: Review
    warnings: str

    @property
    def message(self) -> str:
        """The message of a Status."""
        text: str = self.body["message"]
        return text


async def send(
    client: Client, method: str, path: str, body: Any = None, *, content_type: str = "application/json", **params: str
) -> Reply:
    """Send a request to an API server."""
    content = b"" if body is None else json.dumps(body).encode()
    response = await client._transport.request(method, path, params=params, content=content, content_type=content_type)
    found = json.loads(response.body) if response.body.startswith(b"{") else {}  # a page for paths that are not served
    return Reply(response.code, found, response.headers.get("warning", ""))


@attrs.define(eq=False)
class WebhookServer:
    """A server with one webhook for each path."""

    url: str = ""
    bundle: str = ""
    """The ``caBundle``."""
    answers: dict[str, Answer] = attrs.field(factory=dict)
    reviews: list[tuple[str, Review]] = attrs.field(factory=list)
    """The path and the request of each review, without those of probes."""
    probed: set[str] = attrs.field(factory=set)
    """The names of the probes that have been received."""

    def client(self, path: str) -> dict[str, str]:
        """Return the ``clientConfig`` of a webhook."""
        return {"url": self.url + path, "caBundle": self.bundle}

    def requests(self, path: str) -> list[Review]:
        """Return the requests for a webhook."""
        return [request for called, request in self.reviews if called == path]

    async def app(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Answer one review, as an ASGI application."""
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        review, path = json.loads(body), scope["path"]
        request = review["request"]
        name = ((request.get("object") or {}).get("metadata") or {}).get("name") or ""
        if name.startswith(PROBE) or path.startswith("/probe-"):
            self.probed.add(path)
            answer = allow()
        else:
            self.reviews.append((path, request))
            answer = self.answers[path]
        answered = await answer(request)
        code, media_type = 200, "application/json"
        if isinstance(answered, tuple):
            code, media_type, content = answered
        else:
            response = {"uid": request["uid"], **answered}
            content = json.dumps(
                {**{key: review[key] for key in ("kind", "apiVersion")}, "response": response}
            ).encode()
        headers = [(b"content-type", media_type.encode()), (b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": code, "headers": headers})
        await send({"type": "http.response.body", "body": content, "more_body": False})


@asynccontextmanager
async def open_webhook_server() -> AsyncIterator[WebhookServer]:
    """Serve webhooks on a free port of loopback, with a certificate of a new authority."""
    authority, context = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server = WebhookServer(bundle=base64.b64encode(authority.cert_pem.bytes()).decode())
    async with trio.open_nursery() as nursery:
        listener = await open_listener("127.0.0.1:0")
        server.url = await nursery.start(
            lambda task_status: serve_app(server.app, listener, tls=lambda: context, task_status=task_status)
        )
        yield server
        nursery.cancel_scope.cancel()


@attrs.define(eq=False)
class Installer:
    """Configurations that concern the objects in one namespace, and are deleted at the end of the test."""

    client: Client
    server: WebhookServer
    namespace: str
    paths: list[str] = attrs.field(factory=list)

    async def install(self, *webhooks: dict[str, Any], mutating: bool = False, name: str = "") -> str:
        """Create a configuration, and wait until the API server calls its webhooks.

        Each webhook has the ``path`` at which it is called, and may replace any field of a webhook.
        """
        kind = "MutatingWebhookConfiguration" if mutating else "ValidatingWebhookConfiguration"
        name = f"{name or 'w'}-{os.getpid()}-{next(numbers)}"
        probe = self._webhook({"path": f"/probe-{name}", "name": f"probe.{name}.example.com", "sideEffects": "None"})
        made = [probe, *map(self._webhook, webhooks)]
        path = f"{CONFIGURATIONS}/{kind.lower()}s"
        body = {"apiVersion": CONFIGURATIONS.removeprefix("/apis/"), "kind": kind, "metadata": {"name": name}}
        await self.client.request("POST", path, body={**body, "webhooks": made})
        self.paths.append(f"{path}/{name}")
        await self._wait(f"/probe-{name}")
        return name

    def _webhook(self, given: dict[str, Any]) -> dict[str, Any]:
        path = given["path"]
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        selector = {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}}
        more = {key: value for key, value in given.items() if key not in ("path", "rule")}
        return {
            "name": f"{path.strip('/')}.example.com",
            "rules": [rule | given.get("rule", {})],
            "clientConfig": self.server.client(path),
            "namespaceSelector": selector,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 5,
            **more,
        }

    async def _wait(self, path: str) -> None:
        """Create objects in dry runs until the API server has read the configuration."""
        config_maps = f"/api/v1/namespaces/{self.namespace}/configmaps"
        with trio.fail_after(30):
            while path not in self.server.probed:
                body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{PROBE}-{next(numbers)}"}}
                with suppress(InternalServerError):  # of a webhook that cannot be called
                    await self.client.request("POST", config_maps, body=body, params={"dryRun": "All"})
                await trio.sleep(0.02)

    async def remove(self) -> None:
        """Delete all configurations."""
        for path in self.paths:
            await self.client.request("DELETE", path)

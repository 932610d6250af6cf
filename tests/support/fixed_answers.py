"""A transport that answers some paths itself, with what an embedded server does not serve."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import httpx

from tests.support.cli import Result, opener_of
from trioformer.cli._main import run_command
from trioformer.testing import APIServer

__all__ = ["FixedAnswers", "failure", "run_with"]


def failure(code: int, reason: str, message: str) -> tuple[int, dict[str, Any]]:
    """Return the answer of a server that rejects a request."""
    status = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code}
    return code, {**status, "reason": reason, "message": message}


class FixedAnswers(httpx.AsyncBaseTransport):
    """Answers requests whose path, or path and query, contains a text; a server in memory has the others."""

    def __init__(self, inner: httpx.AsyncBaseTransport, answers: Mapping[str, tuple[int, object]]) -> None:
        self.inner = inner
        self.answers = answers
        self.bodies: list[Any] = []
        """What was sent to the paths that are answered here."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url.raw_path.decode()
        for text, (code, answer) in self.answers.items():
            if text in url:
                content = await request.aread()
                self.bodies.append(json.loads(content) if content else None)
                body = answer if isinstance(answer, str) else json.dumps(answer)
                kind = "text/plain" if isinstance(answer, str) else "application/json"
                return httpx.Response(code, headers={"content-type": kind}, content=body.encode())
        return await self.inner.handle_async_request(request)


async def run_with(
    server: APIServer, answers: Mapping[str, tuple[int, object]], *arguments: str
) -> tuple[Result, list[Any]]:
    """Run a command on a server some of whose answers are fixed; return also the bodies that those were sent."""
    out, err = io.StringIO(), io.StringIO()
    transport = FixedAnswers(server.http_transport(), answers)
    code = await run_command(["-s", server.config.server, *arguments], out, err, {}, opener_of(transport))
    return Result(code, out.getvalue(), err.getvalue()), transport.bodies

"""What a client sees of a server's response, in the same words for every server: status, causes, warnings, object."""

from __future__ import annotations

import json
import re
from typing import Any

from trioformer.client import Client

_WARNING = re.compile(r'299 - "((?:[^"\\]|\\.)*)"')
_INTERNAL = re.compile(
    r'(?<=Invalid value: )(?:\[\{"[nN]ame":.*\}\]|\{.*"(?:Type|type)":"object".*\})(?=: (?:must|only))'
)
_SERVER_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")


async def observe(
    client: Client,
    method: str,
    path: str,
    body: Any,
    *,
    content_type: str = "application/json",
    **params: str,
) -> dict[str, Any]:
    """Send a request; returns the code, the warnings, and the object or the reason and causes of the error.

    Warnings and causes are sorted, as the order of some follows from Go's maps; a cause that is there twice counts
    once.
    A cause that shows the value of a whole schema or version shows Go's internal structs, and is without that value.

    Args:
        client: A client of the server.
        method: Such as ``POST``.
        path: The path.
        body: JSON, or the bytes of the body.
        content_type: The media type of the body.
        params: The query.
    """
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    response = await client._transport.request(method, path, params=params, content=content, content_type=content_type)
    found: dict[str, Any] = {"code": response.code}
    warnings = _WARNING.findall(response.headers.get("warning", ""))
    if warnings:
        found["warnings"] = sorted(text.replace('\\"', '"').replace("\\\\", "\\") for text in warnings)
    obj = json.loads(response.body)
    if response.code < 300:
        for name in _SERVER_FIELDS:
            obj["metadata"].pop(name, None)
        return {**found, "object": obj}
    causes = (obj.get("details") or {}).get("causes")
    if not causes:
        return {**found, "message": obj["message"]}
    texts = {f"{one.get('field', '')}: {one['reason']}: {_INTERNAL.sub('…', one['message'])}" for one in causes}
    return {**found, "causes": sorted(texts)}

"""Bodies of requests and responses in JSON and in protobuf."""

from __future__ import annotations

import json
from typing import Any, Final, TypedDict

import yaml

from trioformer.client._internal import PROTOBUF
from trioformer.models._internal import decode, message_to_json, object_of, open_envelope
from trioformer.transport._internal import Response

JSON: Final = "application/json"
YAML: Final = "application/yaml"
ENCODINGS: Final = (JSON, PROTOBUF)


class Sent(TypedDict):
    """The arguments of a request with a body."""

    content: bytes
    content_type: str


def sent(obj: dict[str, Any], content_type: str) -> Sent:
    """Return the arguments of a request with an object, which is JSON for any content type but protobuf."""
    content = object_of(obj) if content_type == PROTOBUF else None
    return {"content": content or json.dumps(obj).encode(), "content_type": content_type}


def received(response: Response) -> dict[str, Any]:
    """Return the object of a response; a list in protobuf has no items."""
    body = response.body
    if response.headers["content-type"] == YAML:
        parsed: dict[str, Any] = yaml.safe_load(body)
        return parsed
    if response.headers["content-type"] == PROTOBUF:
        api_version, kind, _ = open_envelope(body)
        is_list = kind.endswith("List") and not kind.startswith("API")
        body = json.dumps({"kind": kind, "apiVersion": api_version}).encode() if is_list else message_to_json(body)
    found: dict[str, Any] = decode(body)
    return found

"""Protobuf and YAML for clients that prefer them: responses are converted from JSON.

The rest of the server uses only JSON.  As in kube-apiserver, only built-in kinds have protobuf messages.
Source: apimachinery ``pkg/runtime/serializer/protobuf``, and ``pkg/util/framer`` for watches.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import attrs
import trio

from ...client._internal import PROTOBUF
from ...manifests._internal import dump_sorted
from ...models._internal import (
    decode,
    event_of,
    find_wire_type,
    item_of,
    level_decoder,
    list_items,
    list_of,
    object_of,
)
from ._negotiation import YAML
from ._rendering import SHARED_EVENTS
from ._responses import Response

_CHUNK: Final = 64 * 1024
"""The number of bytes to convert between two checkpoints."""
_list_parts: Final = level_decoder(("kind", "apiVersion", "metadata", "items"))


async def encode(response: Response) -> Response:
    """Convert a response to its encoding.  JSON for which there is no protobuf message is returned unchanged.

    Cancellation:
        Between two items of a list.
    """
    if response.encoding == PROTOBUF:
        return await _as_messages(response)
    if response.encoding != YAML:
        return response
    await trio.lowlevel.checkpoint()
    text = dump_sorted(decode(b"".join(response.chunks)))
    return attrs.evolve(response, chunks=[text.encode()], content_type=YAML)


async def _as_messages(response: Response) -> Response:
    body = b"".join(response.chunks)
    kind, api_version, metadata, raw_items = _list_parts(body)
    if memoryview(raw_items) and memoryview(metadata):
        head = {"kind": decode(kind), "apiVersion": decode(api_version), "metadata": decode(metadata)}
        type_ = find_wire_type(head["apiVersion"], head["kind"].removesuffix("List"))
        if type_ is None:
            return attrs.evolve(response, chunks=[body])
        items: list[bytes] = []
        size = 0
        for raw in list_items(raw_items):
            items.append(item_of(decode(raw), type_))
            size += len(memoryview(raw))
            if size > _CHUNK:
                await trio.lowlevel.checkpoint()
                size = 0
        return attrs.evolve(response, chunks=[list_of(head, items)], content_type=PROTOBUF)
    converted = object_of({"apiVersion": "", **decode(body)})  # APIVersions has none
    if converted is None:
        return attrs.evolve(response, chunks=[body])
    return attrs.evolve(response, chunks=[converted], content_type=PROTOBUF)


@lru_cache(SHARED_EVENTS)
def as_frame(line: bytes) -> bytes:
    """Convert one event of a watch to a frame: the length in four bytes, followed by the event.

    All watches share the result.
    """
    event: dict[str, Any] = decode(line)
    obj = object_of(event["object"])
    assert obj is not None  # the kind is built in
    frame = event_of(event["type"], obj)
    return len(frame).to_bytes(4, "big") + frame

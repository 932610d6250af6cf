"""Convert whole objects between JSON and protobuf, for the embedded server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...errors import DecodeError
from .. import _serde
from . import _plain
from ._encode import to_message
from ._heads import envelope_of, open_envelope
from ._tables import WireType, find_type
from ._wire import tagged

__all__ = ["event_of", "find_wire_type", "item_of", "list_of", "message_to_json", "object_of"]

_LIST_META, _ITEM = 1, 2


def find_wire_type(api_version: str, kind: str) -> WireType | None:
    """Return the message type of a kind, such as ``v1 Pod``, or None if it is not in the table."""
    group, _, version = api_version.rpartition("/")
    module = f"{group.partition('.')[0] or 'core'}_{version}"
    # The types of requests and errors, such as DeleteOptions and Status, can have any apiVersion.
    return find_type(module, kind) or find_type("meta_v1", kind)


def message_to_json(data: bytes) -> bytes:
    """Convert an encoded object to JSON.

    Raises:
        DecodeError: The bytes are not an encoded object, or its kind is not in the table.
    """
    api_version, kind, message = open_envelope(data)
    type_ = find_wire_type(api_version, kind)
    if type_ is None:
        raise DecodeError(f"there is no protobuf type for {api_version} {kind}")
    return _serde.dumps({"apiVersion": api_version, "kind": kind, **_plain.to_plain(message, type_)})


def object_of(obj: dict[str, Any]) -> bytes | None:
    """Encode an object in its envelope; return None if its kind is not in the table."""
    type_ = find_wire_type(obj.get("apiVersion", ""), obj.get("kind", ""))
    return None if type_ is None else envelope_of(obj["apiVersion"], obj["kind"], to_message(obj, type_))


def item_of(item: dict[str, Any], type_: WireType) -> bytes:
    """Encode an item of a list with its tag."""
    return tagged(_ITEM, to_message(item, type_))


def list_of(head: dict[str, Any], items: Iterable[bytes]) -> bytes:
    """Return an encoded list, given a head with kind, apiVersion and metadata, and the encoded items."""
    meta_type = find_type("meta_v1", "ListMeta")
    assert meta_type is not None
    meta = tagged(_LIST_META, to_message(head["metadata"], meta_type))
    return envelope_of(head["apiVersion"], head["kind"], b"".join((meta, *items)))


def event_of(type_: str, obj: bytes) -> bytes:
    """Return the frame of a watch event without its length prefix, given the encoded object."""
    return tagged(1, type_.encode()) + tagged(2, tagged(1, obj))

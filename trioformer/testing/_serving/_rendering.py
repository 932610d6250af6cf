"""The encoding of stored states as objects, as Tables for kubectl, or as PartialObjectMetadata.

The objects are decoded only for Tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import final

import attrs

from ...models._internal import Raw, dumps, level_decoder
from .._storage._clock import Clock
from .._storage._kinds import ServedKind
from .._storage._status import bad_request
from .._storage._storage import JSONObject, Stored
from ._listing import Page
from ._negotiation import Accepted, negotiate, not_acceptable
from ._requests import RequestRecord
from ._tables import cell_of, columns_of

CHUNK = 64 * 1024
"""The approximate size in bytes of the pieces in which a list is sent."""
SHARED_EVENTS = 32
"""The number of encoded events that are kept for the other watches."""
_PARTIAL = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":'

_metadata: Callable[[bytes | Raw], tuple[Raw, ...]] = level_decoder(("metadata",))


def object_json(served: ServedKind, stored: Stored) -> bytes:
    """Return the JSON of an object, with its kind and apiVersion."""
    return b"{" + served.type_meta + served.body(stored)


@final
@attrs.define(eq=False)
class Rendering:
    """An encoder of one response in the negotiated format.  In a watch, only the first Table has column definitions.

    The output is JSON, which is converted to ``accepted.encoding`` when the response is sent.
    """

    accepted: Accepted
    """The encoding and the format that the client accepts."""
    _clock: Clock
    _include: str
    _needs_columns: bool = attrs.field(init=False, default=True)

    @classmethod
    def negotiate(cls, accept: str, served: ServedKind, record: RequestRecord, clock: Clock) -> Rendering:
        """Choose the first format in an ``Accept`` header that is supported.

        Args:
            accept: The header.
            served: The kind of the objects in the response.
            record: The request, whose parameter ``includeObject`` selects the part of each object that the rows of a
                Table contain.
            clock: The clock that is used to calculate the ages in a Table.

        Raises:
            APIStatusError: No format in the header is supported, or the first supported format is not valid for this
                response (406), or ``includeObject`` has an unknown value (400).
        """
        accepted = negotiate(accept, served, record.verb)
        include = record.query.get("includeObject", "") or "Metadata"
        if accepted.format == "Table" and include not in ("Metadata", "Object", "None"):
            wrong = f"includeObject: Invalid value: \"{include}\": must be 'Metadata', 'Object', 'None', or empty"
            raise bad_request(f"Unable to convert to Table as requested: {wrong}")
        is_list = record.verb in ("list", "deletecollection")
        if "Partial" in accepted.format and accepted.format.endswith("List") != is_list:
            # Later clauses are not considered (apiserver ``endpoints/handlers/response.go``).
            # kube-apiserver accepts such a watch, and ends it without an error at its first event.
            found = "a list" if is_list else "not a list"
            raise not_acceptable(f"you requested {accepted.format}, but the requested object is {found}")
        return cls(accepted, clock, include)

    def one(self, served: ServedKind, stored: Stored) -> bytes:
        """Encode one object."""
        if not self.accepted.format:
            return object_json(served, stored)
        if self.accepted.format == "Table":
            return b"".join(self._table(served, {"resourceVersion": str(stored.revision)}, [stored]))
        return _partial(served, stored)

    def page(self, served: ServedKind, page: Page) -> Iterator[bytes]:
        """Encode a page of a list in chunks of about :data:`CHUNK` bytes."""
        metadata: JSONObject = {"resourceVersion": str(page.revision)}
        if page.continue_token:
            metadata["continue"] = page.continue_token
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
        if self.accepted.format == "Table":
            return _in_chunks(self._table(served, metadata, page.items))
        if self.accepted.format:
            kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
            head = dumps({"kind": kind, "apiVersion": version, "metadata": metadata})
            return _in_chunks(_array(head[:-1] + b',"items":[', (_partial(served, stored) for stored in page.items)))
        kind, version = f"{served.info.kind}List", served.info.api_version
        if served.is_builtin:  # items of typed lists do not have kind and apiVersion
            head = dumps({"kind": kind, "apiVersion": version, "metadata": metadata})
            return _in_chunks(_array(head[:-1] + b',"items":[', (b"{" + served.body(stored) for stored in page.items)))
        # A list of custom objects is a Go map, which is encoded sorted: the metadata comes after the items.
        tail = dumps({"kind": kind, "metadata": dict(sorted({"continue": "", **metadata}.items()))})
        head = dumps({"apiVersion": version})[:-1] + b',"items":['
        return _in_chunks(_array(head, (object_json(served, stored) for stored in page.items), b"]," + tail[1:]))

    def event(self, kind: str, served: ServedKind, stored: Stored) -> bytes:
        """Encode one event of a watch.  All watches share the result, except for Tables, whose ages differ."""
        if self.accepted.format == "Table":
            return _event(kind, self.one(served, stored))
        return _shared_event(kind, served, stored, bool(self.accepted.format))

    def bookmark(self, served: ServedKind, revision: int, *, ends_initial_events: bool = False) -> bytes:
        """Encode a bookmark, which is an empty object of the kind with a resourceVersion."""
        metadata: JSONObject = {"resourceVersion": str(revision)}
        if ends_initial_events:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        # As Go encodes an empty Pod.
        more: JSONObject = {"spec": {"containers": None}, "status": {}} if served.resource == "pods" else {}
        if self.accepted.format == "Table":
            obj = b"".join(self._table(served, metadata, []))
        elif self.accepted.format:
            obj = _PARTIAL + dumps(metadata) + b"}"
        else:
            obj = b"{" + served.type_meta + dumps({"metadata": metadata, **more})[1:]
        return b'{"type":"BOOKMARK","object":' + obj + b"}\n"

    def _table(self, served: ServedKind, metadata: JSONObject, states: Iterable[Stored]) -> Iterator[bytes]:
        columns = columns_of(served)
        definitions = [column.definition for column in columns] if self._needs_columns else None
        self._needs_columns = False
        now = self._clock()
        head = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": definitions}

        def row(stored: Stored) -> bytes:
            obj = stored.decoded()
            cells = dumps([cell_of(column, obj, now) for column in columns])
            encode = object_json if self._include == "Object" else _partial
            shown = b"null" if self._include == "None" else encode(served, stored)
            return b'{"cells":' + cells + b',"object":' + shown + b"}"

        return _array(dumps(head)[:-1] + b',"rows":[', map(row, states))


def _partial(served: ServedKind, stored: Stored) -> bytes:
    return _PARTIAL + bytes(_metadata(b"{" + served.body(stored))[0]) + b"}"


def _event(kind: str, obj: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + obj + b"}\n"


@lru_cache(SHARED_EVENTS)
def _shared_event(kind: str, served: ServedKind, stored: Stored, is_partial: bool) -> bytes:
    return _event(kind, _partial(served, stored) if is_partial else object_json(served, stored))


def _array(head: bytes, members: Iterable[bytes], tail: bytes = b"]}") -> Iterator[bytes]:
    yield head
    separator = b""
    for member in members:
        yield separator + member
        separator = b","
    yield tail


def _in_chunks(pieces: Iterator[bytes]) -> Iterator[bytes]:
    chunk: list[bytes] = []
    size = 0
    for piece in pieces:
        chunk.append(piece)
        size += len(piece)
        if size >= CHUNK:
            yield b"".join(chunk)
            chunk, size = [], 0
    yield b"".join(chunk) + b"\n"

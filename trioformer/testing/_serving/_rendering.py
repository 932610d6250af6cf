"""How states become bytes: as objects, as Tables for kubectl, or as PartialObjectMetadata.

Objects are not decoded on their way out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, final

import attrs

from ...models._internal import Raw, decode, dumps, level_decoder
from .._storage._clock import Clock
from .._storage._kinds import Served
from .._storage._status import refusal
from .._storage._storage import JSONObject, Stored
from ._listing import Page
from ._tables import columns_of

CHUNK = 64 * 1024
"""About how many bytes of a list are sent at a time."""
_JSON_TYPES = frozenset({"application/json", "application/*", "*/*"})
_NOT_ACCEPTABLE = "406: Not Acceptable\n\nAvailable representations: application/json, application/json;stream=watch"
_PARTIAL = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":'

_metadata: Callable[[bytes | Raw], tuple[Raw, ...]] = level_decoder(("metadata",))


def clauses_of(accept: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Split an ``Accept`` header into media types and their parameters, in the client's order."""
    for clause in accept.split(","):
        media_type, *parameters = (part.strip() for part in clause.split(";"))
        pairs = (parameter.partition("=") for parameter in parameters)
        yield media_type.lower(), {key.strip(): value.strip() for key, _, value in pairs}


def full(served: Served, stored: Stored) -> bytes:
    """Return an object's JSON, with kind and apiVersion."""
    return b"{" + served.type_meta + stored.body


@final
@attrs.define(eq=False)
class Rendering:
    """One answer's form; a watch keeps it, because only its first Table has the column definitions."""

    form: Literal["object", "table", "partial"]
    """What the client asked for."""
    _clock: Clock
    _include: str = "Metadata"
    _needs_columns: bool = attrs.field(init=False, default=True)

    @classmethod
    def negotiate(cls, accept: str, clock: Clock, include_object: str = "", *, is_list: bool = False) -> Rendering:
        """Choose the first form in an ``Accept`` header that this server has.

        Args:
            accept: The header.
            clock: For the ages in a Table.
            include_object: What the rows of a Table hold of their objects.
            is_list: Whether the answer is a list, whose metadata has a name of its own; a watch is none.

        Raises:
            RefusedError: 406: there is none, or the first is not one for such an answer.
        """
        for media_type, parameters in clauses_of(accept or "*/*"):
            if media_type not in _JSON_TYPES:
                continue
            kind = parameters.get("as")
            if kind is None:
                return cls("object", clock)
            if (parameters.get("g"), parameters.get("v")) == ("meta.k8s.io", "v1"):
                if kind == "Table":
                    return cls("table", clock, include_object or "Metadata")
                if kind in ("PartialObjectMetadata", "PartialObjectMetadataList"):
                    if (kind == "PartialObjectMetadataList") == is_list:
                        return cls("partial", clock)
                    # Clauses that follow are not tried any more (apiserver ``endpoints/handlers/response.go``).
                    # A real server accepts such a watch, and ends it without a word at its first event.
                    message = f"you requested {kind}, but the requested object is {'' if is_list else 'not '}a list"
                    raise refusal(406, reason="NotAcceptable", message=message, details={})
        raise refusal(406, reason="NotAcceptable", message=_NOT_ACCEPTABLE, details={})

    def one(self, served: Served, stored: Stored) -> bytes:
        """Render one object."""
        if self.form == "object":
            return full(served, stored)
        if self.form == "partial":
            return self._partial(stored)
        return b"".join(self._table(served, {"resourceVersion": str(stored.revision)}, [stored]))

    def page(self, served: Served, page: Page) -> Iterator[bytes]:
        """Render a page of a list, in pieces of about :data:`CHUNK` bytes."""
        metadata: JSONObject = {"resourceVersion": str(page.revision)}
        if page.continue_token:
            metadata["continue"] = page.continue_token
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
        if self.form == "table":
            return _in_chunks(self._table(served, metadata, page.items))
        if self.form == "partial":
            kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
            head = dumps({"kind": kind, "apiVersion": version, "metadata": metadata})
            return _in_chunks(_array(head[:-1] + b',"items":[', map(self._partial, page.items)))
        kind, version = f"{served.info.kind}List", served.info.api_version
        if served.is_builtin:  # the items of a typed list are known by the list's kind
            head = dumps({"kind": kind, "apiVersion": version, "metadata": metadata})
            return _in_chunks(_array(head[:-1] + b',"items":[', (b"{" + stored.body for stored in page.items)))
        # A list of custom objects is a Go map: sorted, so that the metadata comes after the items.
        tail = dumps({"kind": kind, "metadata": dict(sorted({"continue": "", **metadata}.items()))})
        head = dumps({"apiVersion": version})[:-1] + b',"items":['
        return _in_chunks(_array(head, (full(served, stored) for stored in page.items), b"]," + tail[1:]))

    def event(self, kind: str, served: Served, stored: Stored) -> bytes:
        """Render one frame of a watch."""
        return b'{"type":"' + kind.encode() + b'","object":' + self.one(served, stored) + b"}\n"

    def bookmark(self, served: Served, revision: int, *, ends_initial_events: bool = False) -> bytes:
        """Render a bookmark: an empty object of the kind, with a resourceVersion."""
        metadata: JSONObject = {"resourceVersion": str(revision)}
        if ends_initial_events:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        # What Go makes of an empty Pod: clients must be able to read it.
        more: JSONObject = {"spec": {"containers": None}, "status": {}} if served.resource == "pods" else {}
        if self.form == "table":
            obj = b"".join(self._table(served, metadata, []))
        elif self.form == "partial":
            obj = _PARTIAL + dumps(metadata) + b"}"
        else:
            obj = b"{" + served.type_meta + dumps({"metadata": metadata, **more})[1:]
        return b'{"type":"BOOKMARK","object":' + obj + b"}\n"

    @staticmethod
    def _partial(stored: Stored) -> bytes:
        return _PARTIAL + bytes(_metadata(b"{" + stored.body)[0]) + b"}"

    def _table(self, served: Served, metadata: JSONObject, states: Iterable[Stored]) -> Iterator[bytes]:
        columns = columns_of(served)
        definitions = [column.definition() for column in columns] if self._needs_columns else None
        self._needs_columns = False
        now = self._clock()
        head = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": definitions}

        def row(stored: Stored) -> bytes:
            obj = decode(b"{" + stored.body)
            cells = dumps([column.cell(obj, now) for column in columns])
            shown = b"null" if self._include == "None" else self._partial(stored)
            return (
                b'{"cells":'
                + cells
                + b',"object":'
                + (full(served, stored) if self._include == "Object" else shown)
                + b"}"
            )

        return _array(dumps(head)[:-1] + b',"rows":[', map(row, states))


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

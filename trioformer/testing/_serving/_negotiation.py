"""The choice of the encoding and the format of a response, based on the ``Accept`` header.

Source: apiserver ``pkg/endpoints/handlers/negotiation``.  For built-in kinds, go-restful rejects unknown media types
first, with a different message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

import attrs

from ...client._internal import PROTOBUF
from .._storage._kinds import ServedKind
from .._storage._status import APIStatusError, status_error
from ._responses import JSON_TYPE

YAML: Final = "application/yaml"
ENCODINGS: Final = (JSON_TYPE, YAML, PROTOBUF)
MEDIA_TYPES: Final = ", ".join(ENCODINGS)
"""The media types in error messages."""
_STREAMS: Final = ", ".join(f"{encoding};stream=watch" for encoding in ENCODINGS if encoding != YAML)
_FORMATS: Final = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList"})


@final
@attrs.frozen
class Accepted:
    """An encoding and a format that a client accepts."""

    encoding: str
    """The media type: JSON, YAML or protobuf."""
    format: str
    """The kind to convert the object to, such as ``Table``.  It is empty for the object itself."""


def clauses_of(accept: str) -> list[tuple[str, dict[str, str]]]:
    """Return the media types of an ``Accept`` header with their parameters, the preferred media types first."""
    clauses = []
    for clause in accept.split(","):
        media_type, *parameters = (part.strip() for part in clause.split(";"))
        pairs = (parameter.partition("=") for parameter in parameters)
        clauses.append((media_type, {key.strip(): value.strip() for key, _, value in pairs}))
    return sorted(clauses, key=lambda clause: _quality(clause[1].get("q", "1")), reverse=True)


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _choices(accept: str) -> Iterator[Accepted]:
    """Yield the supported encodings and formats in an ``Accept`` header, the preferred ones first."""
    for media_type, parameters in clauses_of(accept or "*/*"):
        wanted = [parameters.get(name, "") for name in ("as", "g", "v")]
        if wanted == ["", "", ""] or (wanted[0] in _FORMATS and wanted[1:] == ["meta.k8s.io", "v1"]):
            for encoding in ENCODINGS:
                if media_type in (encoding, "application/*", "*/*"):
                    yield Accepted(encoding, wanted[0])


def encoding_of(accept: str) -> str:
    """Return the encoding that a client prefers for an object that cannot be converted, such as an error."""
    return next((choice.encoding for choice in _choices(accept) if not choice.format), JSON_TYPE)


def negotiate(accept: str, served: ServedKind, verb: str) -> Accepted:
    """Return the preferred encoding and format for the objects of a kind.

    In protobuf, only the metadata of custom kinds is available.  Kinds that are not stored are not available as Tables.

    Args:
        accept: The ``Accept`` header.
        served: The kind.
        verb: The verb of the request.  YAML is not supported in a watch.

    Raises:
        APIStatusError: The server does not support any of the accepted media types and formats (406).
    """
    if served.is_builtin and not {media_type for media_type, _ in clauses_of(accept or "*/*")} & {"*/*", *ENCODINGS}:
        available = f"{MEDIA_TYPES}, {_STREAMS}" if verb in ("list", "watch") else MEDIA_TYPES
        message = f"406: Not Acceptable\n\nAvailable representations: {available}"
        raise status_error(406, reason="NotAcceptable", message=message, details={})
    for choice in _choices(accept):
        if choice.format == "Table":
            is_possible = served.is_stored and choice.encoding != PROTOBUF
        else:
            is_possible = bool(choice.format) or served.is_builtin or choice.encoding != PROTOBUF
        if is_possible and (choice.encoding != YAML or verb != "watch"):
            return choice
    raise not_acceptable(f"only the following media types are accepted: {_STREAMS if verb == 'watch' else MEDIA_TYPES}")


def not_acceptable(message: str) -> APIStatusError:
    """Return a 406 error: the server cannot send the response in a format that the client accepts."""
    return status_error(406, reason="NotAcceptable", message=message)

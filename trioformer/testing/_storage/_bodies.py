"""The decoding of request bodies, and limits on their size.

kube-apiserver accepts 10,000 nesting levels.  This server accepts as many levels as clients of this library can decode.

While a request is handled, no other task runs, and the time that this takes depends on the number of values in the
body.  So the number of values is limited.
The limits allow every object of up to 1.5 MiB, which is the maximum that etcd stores.  Typical manifests have about 30
bytes per value, and about 150 bytes per list or object.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from ..._secret import Secret
from ..._yaml import YamlError, compose, decode_text
from ...errors import DecodeError
from ...models._internal import MAX_LEVELS, TOO_DEEP, decode, dumps
from ._status import status_error

MAX_BYTES: Final = 3 * 1024 * 1024
"""The maximum size of a body in bytes, as in kube-apiserver."""
MAX_VALUES: Final = 100_000
"""The maximum number of values in a body."""
MAX_CONTAINERS: Final = 25_000
"""The maximum number of lists and objects; each takes ten times as long as a number."""


def decode_body(body: bytes) -> Any:
    """Decode the JSON body of a request.

    Raises:
        ValueError: The body is not valid JSON, or has too many levels.
        APIStatusError: The body has too many values (413).
    """
    check_size(body)
    try:
        return decode(body)
    except DecodeError as exc:
        raise ValueError("exceeded max depth" if TOO_DEEP in str(exc) else str(exc)) from exc


def decode_yaml(body: bytes) -> Any:
    """Decode the first document of a YAML body.  JSON is also YAML.

    Raises:
        ValueError: The body is not valid YAML, cannot be represented in JSON, or has too many levels.
        APIStatusError: The body has too many values (413).
    """
    if body.lstrip()[:1] == b"{":
        with suppress(ValueError):  # decoding JSON is much faster
            return decode_body(body)
    check_size(body)
    try:
        composed = compose(decode_text(Secret(body)))
    except YamlError as exc:
        raise ValueError(f"yaml: {exc}") from exc
    if problem := composed.error or next((one.message for one in composed.problems), None):
        raise ValueError(f"yaml: {problem}")
    value = composed.documents[0].value if composed.documents else None
    return decode_body(dumps({} if value is None else value))


def check_size(body: bytes) -> None:
    """Check that a body, or the object that results from it, is not too large."""
    if len(body) > MAX_BYTES:
        raise status_error(413)
    if has_too_many_values(*count_values(body)):
        problem = f"up to {MAX_VALUES} values are accepted, including {MAX_CONTAINERS} lists and objects"
        raise status_error(413, message=f"Request entity too large: {problem}")


def count_values(body: bytes) -> tuple[int, int]:
    """Return upper bounds for the number of values, and for the number of lists and objects, in encoded JSON.

    The counts of a large body are exact, except that empty lists and objects are counted twice.
    The counts of a small body may also include characters in strings.
    """
    containers = body.count(b"{") + body.count(b"[")
    values = containers + body.count(b",") + 1
    if not has_too_many_values(values, containers):
        return values, containers
    # Without escaped quotation marks, a string is the text between an odd quotation mark and the next one.
    marks = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if marks.count(b'"') > 4 * MAX_VALUES:  # each value may have a name and be a string
        return MAX_VALUES + 1, 0
    outside = b"".join(marks.split(b'"')[::2])
    containers = outside.count(b"{") + outside.count(b"[")
    return containers + outside.count(b",") + 1, containers


def has_too_many_values(values: int, containers: int) -> bool:
    """Return whether the number of values, or the number of lists and objects, exceeds the limit for a body."""
    return values > MAX_VALUES or containers > MAX_CONTAINERS


def has_too_many_levels(value: object) -> bool:
    """Return whether a decoded JSON value has more nesting levels than a body may have."""
    level = [value]
    for _ in range(MAX_LEVELS):
        level = [
            member
            for one in level
            for member in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
            if isinstance(member, dict | list)
        ]
        if not level:
            return False
    return True

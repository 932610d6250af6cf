"""Name the object and the path of a field that cannot be decoded, for errors."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

from ...errors import DecodeError
from ._fields import type_of_class
from ._heads import find_key
from ._plain import entry_of, step_of
from ._tables import WireType
from ._wire import Message, read_level

__all__ = ["name_of", "place_of"]


def name_of(cls: type[Any], data: bytes) -> str:
    """Return the kind and key of an object, or the class of a part."""
    key = find_key(data)[0] if hasattr(cls, "__resource__") else ""
    return f"{cls.__name__} {key}" if key else cls.__name__


def place_of(cls: type[Any], message: Message, json: str) -> str:
    """Return the object and the path of a field, such as ``Pod shop/a: spec.containers[0].image``.

    A part does not store its path, because almost no part is ever damaged.  Instead, the part's message is searched in
    the message of its object.  If several parts have the same bytes, the path is that of the first one.

    Args:
        cls: The class of the model that has the field.
        message: The message of the model.
        json: The JSON name of the field.
    """
    data = message.data
    root, whole = message.source or (cls, data)
    wanted = type_of_class(cls), data
    pending = deque([("", type_of_class(root), whole)])
    while pending:
        path, type_, found = pending.popleft()
        if (type_, found) == wanted:
            return f"{name_of(root, whole)}: {path}{json}"
        assert type_ is not None  # a message is of a type of the table
        pending += ((path + step, inner, part) for step, inner, part in _messages_in(found, type_) if data in part)
    return f"{name_of(root, whole)}: {cls.__name__}.{json}"


def _messages_in(data: bytes, type_: WireType) -> Iterator[tuple[str, WireType, bytes]]:
    """Return the path, type and bytes of each message in the fields of a message."""
    counts: Counter[int] = Counter()
    try:
        fields = read_level(data)
    except DecodeError:
        return
    for number, value in fields:
        field = type_.fields.get(number)
        if field is None or len(field.element) == 1 or field.element.startswith("[="):
            continue
        step = "" if field.is_inline else f"{step_of(field, counts[number])}."
        counts[number] += 1
        try:
            part = entry_of(value, field.element)[1] if field.shape == "{" else value
        except DecodeError:
            continue
        if isinstance(part, bytes):
            yield step, type_.type_of(field.element), part

"""Name the object and the path of a field that cannot be decoded, for errors.

A part of an object remembers where it was read, as a tuple of the source of the surrounding model, the JSON name of the
field, and the index in a list.  The source of an object is a tuple of its class and its head.  So a part does not keep
the bytes of its object in memory.
"""

from __future__ import annotations

from typing import Any

from ._heads import find_key
from ._wire import Message, step_of

__all__ = ["place_of", "source_of"]


def source_of(model: object, message: Message) -> tuple[Any, ...]:
    """Return the source of the parts that are read from a model's message."""
    if message.source is not None:
        return message.source
    cls = type(model)
    slot = getattr(cls, "_head", None)
    if slot is None:  # a part that was made alone
        return cls, None
    try:
        return cls, slot.__get__(model)
    except AttributeError:  # the head of a changed object is made when it is first read
        return cls, find_key(message.data)[0]


def place_of(source: tuple[Any, ...], json: str = "") -> str:
    """Return the object and the path of a field, such as ``Pod shop/a: spec.containers[0].image``.

    Args:
        source: The source of the field's model.
        json: The JSON name of the field, or an empty string for the model itself.
    """
    steps = [json] if json else []
    found: Any = source
    while len(found) > 2:
        found, *step = found
        steps.append(step_of(*step))
    cls, known = found
    key = getattr(known, "key", known)
    name = f"{cls.__name__} {key}" if key and key.isprintable() else cls.__name__
    return f"{name}: {'.'.join(reversed(steps))}" if steps else name

"""Messages of a server without the objects that they quote.

An object may be a Secret, and the text of an error goes to logs, reports and the status of other objects.
kube-apiserver quotes the whole object, or the whole patch, where a patch does not lead to an object of the kind.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["without_object", "without_objects"]

_VALUE: Final = r'Invalid value: "[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z)'
"""A value as Go quotes it; perhaps cut off."""
_LEFT_OUT: Final = 'Invalid value: "…"'

_CAUSE: Final = re.compile(rf"\A{_VALUE}", re.DOTALL)
# A field of this name that is inside of an object has its path before it, and a value of its own.
_PATCH: Final = re.compile(rf"(?<![\w.\]-])patch: {_VALUE}", re.DOTALL)
# apimachinery, util/strategicpatch and util/mergepatch; structured-merge-diff, value/value.go: formats of Go without
# quotes, so that only the end of the message is certainly the end of the value.  Where there are several errors of
# types, the others are lost.
_FORMATS: Final = (
    (re.compile(r"(: expected [^,]{1,40}, got )&.*", re.DOTALL), r"\1…"),
    (re.compile(r"\A(map: )map\[.*\]( does not contain declared merge key: )", re.DOTALL), r"\1…\2"),
    (re.compile(r"\A(unknown patch type: .* in map: )map\[.*", re.DOTALL), r"\1…"),
    (re.compile(r"\A(list element types are not identical: ).*", re.DOTALL), r"\1…"),
    (
        re.compile(r"\A(The order in patch list:\s).*(\sdoesn't match \$setElementOrder list:\s).*", re.DOTALL),
        r"\1…\2…",
    ),
)


def without_objects(message: str) -> str:
    """Return the message of a Status with ``…`` for the objects that it quotes; what is wrong with them stays."""
    message = _PATCH.sub(f"patch: {_LEFT_OUT}", message)
    for pattern, replacement in _FORMATS:
        message = pattern.sub(replacement, message)
    return message


def without_object(message: str, *, field: str) -> str:
    """Return the message of a cause with ``…`` for the object that it quotes.

    Args:
        message: The message.
        field: The field of the cause; it is ``patch`` if the value is an object.
    """
    return _CAUSE.sub(_LEFT_OUT, message) if field == "patch" else message

"""The details of a Status, read from JSON that nobody has checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final, cast

import attrs

from ._text import one_line

MAX_CAUSES: Final = 500
"""How many causes are read; a server lists one for each invalid field."""
MAX_MESSAGE: Final = 1_000
"""Characters of the message of a cause."""
MAX_NAME: Final = 500
"""Characters of a name or a reason; Kubernetes allows 253."""
MAX_RETRY_AFTER: Final = 999_999_999
"""The largest ``retryAfterSeconds``; a larger one is taken for this.  No code has to care for numbers without bound."""


@attrs.frozen
class StatusCause:
    """One cause in a Status: usually one invalid field."""

    reason: str = ""
    """Machine-readable, such as ``FieldValueRequired`` or ``ResourceVersionTooLarge``."""
    message: str = ""
    """A description for people, as one line of at most 1,000 characters."""
    field: str = ""
    """The field's path, such as ``spec.containers[0].name``."""


@attrs.frozen
class StatusDetails:
    """The details of a Status (API conventions, "Response Status Kind"); each text is one printable line."""

    name: str = ""
    """The object's name."""
    group: str = ""
    """The object's API group."""
    kind: str = ""
    """The object's resource or kind, as the server spells it."""
    uid: str = ""
    """The object's uid."""
    causes: tuple[StatusCause, ...] = ()
    """The causes, 500 at most."""
    retry_after_seconds: int = 0
    """How long to wait before a retry; 0 when the server does not say."""


def text_in(members: Mapping[str, object], name: str) -> str:
    """Return the text of a member as the server sent it; empty without one."""
    value = members.get(name)
    return value if isinstance(value, str) else ""


def name_in(members: Mapping[str, object], name: str) -> str:
    """Return the text of a member that is a name, as one short line."""
    return one_line(text_in(members, name), longest=MAX_NAME)


def details_in(status: Mapping[str, object]) -> StatusDetails:
    """Read the details of a Status; what is missing or of a wrong type is empty."""
    raw = status.get("details")
    if not isinstance(raw, Mapping):
        return StatusDetails()
    details = cast("Mapping[str, object]", raw)
    listed = details.get("causes")
    after = details.get("retryAfterSeconds")
    return StatusDetails(
        name=name_in(details, "name"),
        group=name_in(details, "group"),
        kind=name_in(details, "kind"),
        uid=name_in(details, "uid"),
        causes=_causes(cast("Iterable[object]", listed)) if isinstance(listed, list | tuple) else (),
        retry_after_seconds=min(after, MAX_RETRY_AFTER) if type(after) is int and after > 0 else 0,
    )


def _causes(listed: Iterable[object]) -> tuple[StatusCause, ...]:
    causes = (cast("Mapping[str, object]", each) for each in listed if isinstance(each, Mapping))
    return tuple(
        StatusCause(
            name_in(cause, "reason"), one_line(text_in(cause, "message"), longest=MAX_MESSAGE), name_in(cause, "field")
        )
        for cause in islice(causes, MAX_CAUSES)
    )


def error_code_in(status: Mapping[str, object], *, code: int) -> int:
    """Return the code of an error: that of the Status, or else that of its response; 0 if neither is that of an error.

    A response of success may hold the Status of a failure, and its code may be anything.
    """
    own = status.get("code")
    if type(own) is int and 400 <= own <= 599:
        return own
    return code if code >= 400 else 0

"""What a list has beside its items."""

from __future__ import annotations

import itertools
import re
from typing import Final, final

import attrs

from ..errors import DecodeError
from ..models._internal import decode, level_decoder

EXPECTED: Final = "expected a list, but the server sent"
MAX_CANDIDATES: Final = 16

_ITEMS_NAME: Final = re.compile(rb'(?<!\\)"items"[ \t\r\n]*:')
_METADATA_NAME: Final = re.compile(rb'(?<!\\)"metadata"[ \t\r\n]*:')
TWICE: Final = f"{EXPECTED} one with two items or metadata"
_COUNT: Final = re.compile(rb"[0-9]{1,18}")
_metadata_of: Final = level_decoder(("resourceVersion", "continue", "remainingItemCount"))
_items_of: Final = level_decoder(("items",))


@final
@attrs.frozen(kw_only=True)
class ListHead:
    """The members of a list beside its items."""

    kind: str = ""
    """Kind, such as ``PodList``."""
    api_version: str = ""
    """``group/version``."""
    resource_version: str = ""
    """The version of the collection."""
    continue_token: str = ""
    """The token for the next page; empty on the last page."""
    remaining_item_count: int | None = None
    """The number of items on further pages, if the server reports it."""


def check_names(text: bytes) -> None:
    """Check that the members of a list that decide about it are there once.

    Raises:
        DecodeError: One is there twice.
    """
    if any(len(_places(text, name)) > 1 for name in (_ITEMS_NAME, _METADATA_NAME)):
        raise DecodeError(TWICE)


def _places(text: bytes, name: re.Pattern[bytes]) -> list[int]:
    """Find where the members of this name at the top level begin."""
    found = list(itertools.islice(name.finditer(text), MAX_CANDIDATES))
    if len(found) > 1:
        found = [each for each in found if _is_at_top_level(text[: each.end()])]
    return [each.start() for each in found]


def _is_at_top_level(text: bytes) -> bool:
    """Whether a value and one brace complete the object."""
    try:
        _items_of(text + b"null}")
    except (ValueError, RecursionError):
        return False
    return True


def make_head(raw_metadata: bytes, raw_kind: bytes, raw_api_version: bytes) -> ListHead:
    """Make the head of the raw members.

    Raises:
        DecodeError: The metadata, or what decides about the list in them, are of a wrong type.
    """
    if raw_metadata in (b"", b"null"):
        raw_metadata = b"{}"
    if not raw_metadata.startswith(b"{"):
        raise DecodeError(f"{EXPECTED} metadata that is not an object")
    version, token, remaining = map(bytes, _metadata_of(raw_metadata))
    return ListHead(
        kind=_text(raw_kind),
        api_version=_text(raw_api_version),
        resource_version=_text(version, "resourceVersion"),
        continue_token=_text(token, "continue"),
        remaining_item_count=int(remaining) if _COUNT.fullmatch(remaining) else None,
    )


def _text(raw: bytes, name: str = "") -> str:
    """Return a string; empty for another type.

    Raises:
        DecodeError: It is of another type and has a name: a list would seem to be complete, or to have no version.
    """
    value: object = decode(raw) if raw.startswith(b'"') else ""
    if name and not raw.startswith(b'"') and raw not in (b"", b"null"):
        raise DecodeError(f"{EXPECTED} one whose metadata.{name} is not a string")
    return value if isinstance(value, str) else ""

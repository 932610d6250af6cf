"""List requests: the choice of the revision, and pages.

Source: apimachinery ``ValidateListOptions``, apiserver ``pkg/storage/continue.go`` and ``pkg/storage/etcd3``, and the
API concepts page's table of ``resourceVersion``, ``resourceVersionMatch``, ``limit`` and ``continue``.
"""

from __future__ import annotations

import base64
import bisect
import re
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import final

import attrs

from ...errors import DecodeError
from ...models._internal import decode, dumps
from .._storage._conversion_webhooks import views_of
from .._storage._field_errors import forbidden, not_supported
from .._storage._kinds import ServedKind
from .._storage._selection import Selection
from .._storage._status import bad_request, expired, invalid_options, too_large_resource_version
from .._storage._storage import CompactedError, JSONObject, Storage, Stored

_LIST_EXPIRED = "The resourceVersion for the provided list is too old."
_CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_MATCH = "resourceVersionMatch"
_LONGEST_NUMBER = 20
"""The maximum length of a 64-bit integer with its sign."""
_TRUE = frozenset({"1", "t", "T", "true", "True", "TRUE"})
_FALSE = frozenset({"0", "f", "F", "false", "False", "FALSE"})


def flag(query: Mapping[str, str], name: str) -> bool | None:
    """Parse a boolean query parameter as Go does.  An empty parameter is True, and an absent parameter is None."""
    text = query.get(name)
    if text is None:
        return None
    if text in _TRUE or text == "":
        return True
    if text in _FALSE:
        return False
    raise bad_request(f'{name}: strconv.ParseBool: parsing "{text}": invalid syntax')


def number(query: Mapping[str, str], name: str) -> int | None:
    """Parse an integer query parameter.  Return None if the parameter is absent."""
    return parse_number(query[name], f"{name}: ") if name in query else None


def parse_number(text: str, where: str = "") -> int:
    """Parse an integer as Go does."""
    if not re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII):
        raise bad_request(f'{where}strconv.ParseInt: parsing "{text}": invalid syntax')
    value = int(text) if len(text) <= _LONGEST_NUMBER else 2**63
    if not -(2**63) <= value < 2**63:
        raise bad_request(f'{where}strconv.ParseInt: parsing "{text}": value out of range')
    return value


def revision_number(text: str) -> int | None:
    """Parse a resourceVersion.  Return None if the resourceVersion is not a number."""
    value = int(text) if text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER else -1
    return value if 0 <= value < 2**64 else None


@final
@attrs.frozen
class ListOptions:
    """The query parameters of a list or watch request."""

    selection: Selection
    """The selectors."""
    resource_version: str = ""
    """``resourceVersion``, not parsed."""
    match: str = ""
    """``resourceVersionMatch``."""
    limit: int = 0
    """``limit``, the page size; 0 for all objects."""
    continue_token: str = ""
    """``continue``, the token of the previous page."""
    watch: bool = False
    """True for a watch."""
    bookmarks: bool = False
    """``allowWatchBookmarks``."""
    send_initial_events: bool | None = None
    """``sendInitialEvents``."""
    timeout: int | None = None
    """``timeoutSeconds``."""

    @classmethod
    def parse(cls, served: ServedKind, query: Mapping[str, str]) -> ListOptions:
        """Parse and validate the query parameters."""
        options = cls(
            selection=Selection.parse(served, query.get("labelSelector", ""), query.get("fieldSelector", "")),
            resource_version=query.get("resourceVersion", ""),
            match=query.get("resourceVersionMatch", ""),
            limit=max(number(query, "limit") or 0, 0),
            continue_token=query.get("continue", ""),
            watch=flag(query, "watch") or False,
            bookmarks=flag(query, "allowWatchBookmarks") or False,
            send_initial_events=flag(query, "sendInitialEvents"),
            timeout=number(query, "timeoutSeconds"),
        )
        if causes := [*(options._watch_causes() if options.watch else options._list_causes())]:
            raise invalid_options("ListOptions", causes)
        return options

    def _list_causes(self) -> Iterator[JSONObject]:
        match = self.match
        if match and not self.resource_version:
            yield forbidden(_MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided")
        if match and self.continue_token:
            yield forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided")
        if match not in ("", "Exact", "NotOlderThan"):
            yield not_supported(_MATCH, match, ("Exact", "NotOlderThan", ""))
        if match == "Exact" and self.resource_version == "0":
            yield forbidden(_MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
        if self.send_initial_events is not None:
            yield forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")

    def _watch_causes(self) -> Iterator[JSONObject]:
        match = self.match
        if self.send_initial_events is not None and match != "NotOlderThan":
            yield forbidden(_MATCH, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
        if match and self.send_initial_events is None:
            yield forbidden(_MATCH, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
        if match not in ("", "NotOlderThan"):
            yield not_supported(_MATCH, match, ("NotOlderThan",))
        if match and self.continue_token:
            yield forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided")


@final
@attrs.frozen
class Page:
    """One page of a list."""

    items: list[Stored]
    """The states, ordered by key."""
    revision: int
    """The list's resourceVersion."""
    continue_token: str = ""
    """The token of the next page. It is empty on the last page."""
    remaining: int | None = None
    """The number of items after this page. It is None on the last page, or if it is unknown because of a selector."""


def list_page(storage: Storage, served: ServedKind, namespace: str, options: ListOptions) -> Page:
    """Read one page of a consistent list.

    ``resourceVersion="0"`` reads the current state and ignores ``limit``, as kube-apiserver's watch cache does.
    """
    prefix = f"{namespace}/" if namespace else ""
    if options.continue_token:
        return _next_page(storage, served, prefix, options)
    revision = _exact_revision(storage, options)
    try:
        items = views_of(served, storage.snapshot(served.resource, prefix, revision))
    except CompactedError as exc:
        raise expired(_LIST_EXPIRED) from exc
    limit = 0 if options.resource_version == "0" else options.limit
    return _cut(items, limit, prefix, storage.revision if revision is None else revision, options.selection)


def minimum_revision(storage: Storage, resource_version: str) -> int:
    """Parse the minimum resourceVersion of a response.  If the minimum is 0 or empty, any version is allowed."""
    requested = revision_number(resource_version or "0")
    if requested is None:
        raise bad_request(f"invalid resource version: {revision_problem(resource_version)}")
    if requested > storage.revision:
        raise too_large_resource_version(requested, storage.revision)
    return requested


def _exact_revision(storage: Storage, options: ListOptions) -> int | None:
    """Return the exact revision to read, or None for the current revision."""
    requested = minimum_revision(storage, options.resource_version)
    # A limit without resourceVersionMatch requests the exact revision, as before resourceVersionMatch existed.
    is_exact = options.match == "Exact" or (options.limit and not options.match)
    return requested if requested and is_exact else None


def _next_page(storage: Storage, served: ServedKind, prefix: str, options: ListOptions) -> Page:
    if options.resource_version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    revision, start = decode_continue(options.continue_token)
    if revision > storage.revision:
        raise too_large_resource_version(revision, storage.revision)
    try:
        # The token in a 410 has the revision -1: continue with the current state.
        items = views_of(served, storage.snapshot(served.resource, prefix, None if revision == -1 else revision))
    except CompactedError as exc:
        raise expired(_CONTINUE_EXPIRED, continue_token=encode_continue(-1, start)) from exc
    first = bisect.bisect_left(items, prefix + start, key=attrgetter("key"))
    revision = storage.revision if revision == -1 else revision
    return _cut(items[first:], options.limit, prefix, revision, options.selection)


def _cut(items: list[Stored], limit: int, prefix: str, revision: int, selection: Selection) -> Page:
    if not limit or (selection.is_empty and len(items) <= limit):
        return Page([one for one in items if selection.matches(one)], revision)
    if selection.is_empty:
        chosen, more, remaining = items[:limit], True, len(items) - limit
    else:
        chosen, more, remaining = [], False, None
        for one in items:
            if selection.matches(one):
                if len(chosen) == limit:
                    more = True
                    break
                chosen.append(one)
    if not more:
        return Page(chosen, revision)
    return Page(chosen, revision, encode_continue(revision, chosen[-1].key[len(prefix) :] + "\0"), remaining)


def encode_continue(revision: int, start: str) -> str:
    """Encode a continue token, which contains the listed revision and the next key.

    The key does not contain the namespace if only one namespace is listed.
    """
    token = dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": "/" + start})
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def decode_continue(text: str) -> tuple[int, str]:
    """Decode a continue token."""
    if "+" in text or "/" in text:  # Python accepts them, with a warning from 3.15 on; Go does not
        raise bad_request("invalid continue token: continue key is not valid")
    try:
        token = decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        version, revision, start = token["v"], token["rv"], token["start"]
    except (DecodeError, LookupError, RecursionError, TypeError, ValueError) as exc:
        raise bad_request("invalid continue token: continue key is not valid") from exc
    if version != "meta.k8s.io/v1" or type(revision) is not int or not isinstance(start, str) or not start:
        raise bad_request("invalid continue token: continue key is not valid")
    if revision == 0 or not -(2**63) <= revision < 2**63 or ".." in start.split("/"):
        raise bad_request("invalid continue token: continue key is not valid")
    return revision, start.removeprefix("/")


def revision_problem(text: str) -> str:
    """Return the problem of a resourceVersion that is not a number."""
    return f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'

"""Lists: which revision, which page.

Source: apimachinery ``ValidateListOptions``, apiserver ``pkg/storage/continue.go`` and ``pkg/storage/etcd3``,
and the API concepts page's table of ``resourceVersion``, ``resourceVersionMatch``, ``limit`` and ``continue``.
"""

from __future__ import annotations

import base64
import bisect
import re
from collections.abc import Mapping
from typing import final

import attrs

from ...errors import DecodeError
from ...models._internal import decode, dumps
from .._storage._kinds import Served
from .._storage._selection import Selection
from .._storage._status import (
    bad_request,
    cause,
    expired,
    invalid_options,
    refusal,
    too_large_resource_version,
)
from .._storage._storage import CompactedError, JSONObject, Storage, Stored

_LIST_EXPIRED = "The resourceVersion for the provided list is too old."
_CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_LONGEST_NUMBER = 18
"""Digits of what surely fits into 64 bits."""
_TRUE = frozenset({"1", "t", "T", "true", "True", "TRUE"})
_FALSE = frozenset({"0", "f", "F", "false", "False", "FALSE"})


def flag(query: Mapping[str, str], name: str) -> bool | None:
    """Read a boolean query parameter as Go does; present and empty is true, absent None.

    Raises:
        RefusedError: 400: it is no boolean.
    """
    text = query.get(name)
    if text is None:
        return None
    if text in _TRUE or text == "":
        return True
    if text in _FALSE:
        return False
    raise bad_request(f'{name}: strconv.ParseBool: parsing "{text}": invalid syntax')


def number(query: Mapping[str, str], name: str) -> int | None:
    """Read an integer query parameter; absent or empty is None.

    Raises:
        RefusedError: 400: it is no integer.
    """
    text = query.get(name, "")
    if not text:
        return None
    if not re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII):
        raise bad_request(f'{name}: strconv.ParseInt: parsing "{text}": invalid syntax')
    if len(text) > _LONGEST_NUMBER:
        raise bad_request(f'{name}: strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


def revision_number(text: str) -> int | None:
    """Read a resourceVersion; None when it is no number."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER else None


@final
@attrs.frozen
class ListOptions:
    """The query parameters of a list or watch."""

    selection: Selection
    """The selectors."""
    resource_version: str = ""
    """``resourceVersion`` as it came."""
    match: str = ""
    """``resourceVersionMatch``."""
    limit: int = 0
    """The page size; 0 is everything."""
    continue_token: str = ""
    """Where the last page ended."""
    watch: bool = False
    """Whether this is a watch."""
    bookmarks: bool = False
    """``allowWatchBookmarks``."""
    send_initial_events: bool | None = None
    """``sendInitialEvents``."""
    timeout: int | None = None
    """``timeoutSeconds``."""

    @classmethod
    def parse(cls, served: Served, query: Mapping[str, str]) -> ListOptions:
        """Read and check the parameters.

        Raises:
            RefusedError: 400 or 422.
        """
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
        causes = options._watch_causes() if options.watch else options._list_causes()
        if causes:
            raise invalid_options("ListOptions", causes)
        return options

    def _list_causes(self) -> list[JSONObject]:
        causes = []
        match = self.match
        if match and not self.resource_version:
            causes.append(_forbidden_match("resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if match and self.continue_token:
            causes.append(_forbidden_match("resourceVersionMatch is forbidden when continue is provided"))
        if match not in ("", "Exact", "NotOlderThan"):
            causes.append(_unsupported_match(match, '"Exact", "NotOlderThan", ""'))
        if match == "Exact" and self.resource_version == "0":
            causes.append(_forbidden_match('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
        if self.send_initial_events is not None:
            problem = "Forbidden: sendInitialEvents is forbidden for list"
            causes.append(cause("FieldValueForbidden", problem, "sendInitialEvents"))
        return causes

    def _watch_causes(self) -> list[JSONObject]:
        causes = []
        match = self.match
        if self.send_initial_events is not None and match != "NotOlderThan":
            causes.append(_forbidden_match("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
        if match and self.send_initial_events is None:
            problem = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            causes.append(_forbidden_match(problem))
        if match not in ("", "NotOlderThan"):
            causes.append(_unsupported_match(match, '"NotOlderThan"'))
        if match and self.continue_token:
            causes.append(_forbidden_match("resourceVersionMatch is forbidden when continue is provided"))
        return causes


def _forbidden_match(problem: str) -> JSONObject:
    return cause("FieldValueForbidden", f"Forbidden: {problem}", "resourceVersionMatch")


def _unsupported_match(value: str, supported: str) -> JSONObject:
    message = f'Unsupported value: "{value}": supported values: {supported}'
    return cause("FieldValueNotSupported", message, "resourceVersionMatch")


@final
@attrs.frozen
class Page:
    """One answer to a list request."""

    items: list[Stored]
    """The states, ordered by key."""
    revision: int
    """The list's resourceVersion."""
    continue_token: str = ""
    """Where the next page begins; empty on the last one."""
    remaining: int | None = None
    """How many items come after this page; None when there are none or a selector makes it unknown."""


def list_page(storage: Storage, served: Served, namespace: str, options: ListOptions) -> Page:
    """Read one page of a consistent list.

    ``resourceVersion="0"`` is answered from the present state and ignores ``limit``, as a real server's watch cache
    does.

    Raises:
        RefusedError: 400, 410 or 504.
    """
    prefix = f"{namespace}/" if namespace else ""
    if options.continue_token:
        return _next_page(storage, served, prefix, options)
    revision = _exact_revision(storage, options)
    try:
        items = storage.snapshot(served.resource, prefix, revision)
    except CompactedError as exc:
        raise expired(_LIST_EXPIRED) from exc
    limit = 0 if options.resource_version == "0" else options.limit
    return _cut(items, limit, prefix, storage.revision if revision is None else revision, options.selection)


def minimum_revision(storage: Storage, resource_version: str) -> int:
    """Read a resourceVersion that the answer must not be older than; 0 and empty ask for nothing.

    Raises:
        RefusedError: 400 when it is no number, 504 when it is in the future.
    """
    wanted = revision_number(resource_version or "0")
    if wanted is None:
        problem = f'resourceVersion: Invalid value: "{resource_version}": strconv.ParseUint: parsing '
        raise bad_request(f'invalid resource version: {problem}"{resource_version}": invalid syntax')
    if wanted > storage.revision:
        raise too_large_resource_version(wanted, storage.revision)
    return wanted


def _exact_revision(storage: Storage, options: ListOptions) -> int | None:
    """The revision that must be shown; None for the present one."""
    wanted = minimum_revision(storage, options.resource_version)
    # A limit without a match asks for the exact revision: so it was before resourceVersionMatch existed.
    is_exact = options.match == "Exact" or (options.limit and not options.match)
    return wanted if wanted and is_exact else None


def _next_page(storage: Storage, served: Served, prefix: str, options: ListOptions) -> Page:
    if options.resource_version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    revision, start = decode_continue(options.continue_token)
    try:
        # -1 comes from a 410: go on with whatever there is now.
        items = storage.snapshot(served.resource, prefix, None if revision == -1 else revision)
    except CompactedError as exc:
        raise expired(_CONTINUE_EXPIRED, continue_token=encode_continue(-1, start)) from exc
    first = bisect.bisect_left(items, prefix + start, key=_key_of)
    revision = storage.revision if revision == -1 else revision
    return _cut(items[first:], options.limit, prefix, revision, options.selection)


def _cut(items: list[Stored], limit: int, prefix: str, revision: int, selection: Selection) -> Page:
    if not limit or (selection.is_everything and len(items) <= limit):
        return Page([one for one in items if selection.matches(one)], revision)
    if selection.is_everything:
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


def _key_of(stored: Stored) -> str:
    return stored.key


def encode_continue(revision: int, start: str) -> str:
    """Make a token: the revision that is listed, and the key to begin with, without its namespace if that is listed."""
    token = dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": "/" + start})
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def decode_continue(text: str) -> tuple[int, str]:
    """Read a token.

    Raises:
        RefusedError: 400: it is none of this server's.
    """
    try:
        token = decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        version, revision, start = token["v"], token["rv"], token["start"]
    except (DecodeError, LookupError, TypeError, ValueError) as exc:
        raise bad_request(f"invalid continue token: continue key is not valid: {exc}") from exc
    if version != "meta.k8s.io/v1" or not isinstance(revision, int) or not isinstance(start, str) or not start:
        raise bad_request("invalid continue token: continue key is not valid")
    return revision, start.removeprefix("/")


def refuse_bad_watch_revision(resource_version: str) -> Exception:
    """500: so a real server answers a watch from something that is no number."""
    problem = f'resourceVersion: Invalid value: "{resource_version}": strconv.ParseUint: parsing '
    return refusal(500, reason="", message=f'{problem}"{resource_version}": invalid syntax')

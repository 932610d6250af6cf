"""The options of lists and watches, and their query parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, final

import attrs

from ..models import FieldSelector, LabelSelector

LabelSelectorLike: TypeAlias = LabelSelector | Mapping[str, str] | str
"""A label selector: a parsed one, text such as ``app=web,tier in (back,front)``, or labels that must be equal."""

FieldSelectorLike: TypeAlias = FieldSelector | Mapping[str, str] | str
"""A field selector: a parsed one, text such as ``spec.nodeName=worker-1``, or fields that must be equal."""

PropagationPolicy: TypeAlias = Literal["Orphan", "Background", "Foreground"]
"""When to delete the objects that a deleted object owns: never, after it, or before it."""

FieldValidation: TypeAlias = Literal["Ignore", "Warn", "Strict"]
"""How the server treats unknown and duplicate fields of a write: ignore them, send a warning, or reject the write."""


@final
@attrs.frozen(kw_only=True)
class ListOptions:
    """The options of one page of a list (``meta/v1 ListOptions``)."""

    label_selector: str | None = None
    """Only objects whose labels match, such as ``app=web``."""
    field_selector: str | None = None
    """Only objects whose fields match, such as ``spec.nodeName=worker-1``."""
    resource_version: str | None = None
    """None for the newest state, ``"0"`` for any; otherwise see ``resource_version_match``."""
    resource_version_match: str | None = None
    """``NotOlderThan`` or ``Exact``; None lets the server choose."""
    limit: int | None = None
    """The maximum number of objects; None for all."""
    continue_token: str | None = None
    """The token from the previous page."""
    timeout_seconds: int | None = None
    """The time that the server may take; None lets it choose."""


def list_params(options: ListOptions) -> dict[str, str]:
    """Return the query parameters of a list, omitting None and empty values.

    Raises:
        SelectorError: A selector does not parse.
    """
    return params_of(
        labelSelector=str(LabelSelector.of(options.label_selector)),
        fieldSelector=str(FieldSelector.of(options.field_selector)),
        resourceVersion=options.resource_version,
        resourceVersionMatch=options.resource_version_match,
        limit=options.limit or None,
        timeoutSeconds=options.timeout_seconds,
        **{"continue": options.continue_token},
    )


def watch_params(
    *,
    label_selector: LabelSelectorLike | None,
    field_selector: FieldSelectorLike | None,
    resource_version: str | None,
    timeout_seconds: int | None,
    allow_bookmarks: bool,
    send_initial_events: bool | None,
) -> dict[str, str]:
    """Return the query parameters of a watch, omitting None and empty values.

    Raises:
        SelectorError: A selector does not parse.
    """
    return params_of(
        watch="true",
        labelSelector=str(LabelSelector.of(label_selector)),
        fieldSelector=str(FieldSelector.of(field_selector)),
        resourceVersion=resource_version,
        # The server requires it with sendInitialEvents (KEP-3157).
        resourceVersionMatch=None if send_initial_events is None else "NotOlderThan",
        timeoutSeconds=timeout_seconds,
        allowWatchBookmarks="true" if allow_bookmarks else None,
        sendInitialEvents=None if send_initial_events is None else str(send_initial_events).lower(),
    )


def params_of(**params: str | int | None) -> dict[str, str]:
    """Return query parameters, omitting None and empty values."""
    return {name: str(value) for name, value in params.items() if value not in (None, "")}

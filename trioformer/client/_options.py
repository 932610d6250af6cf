"""What may be asked of a list or a watch, as values and as query parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, final

import attrs

from ..models import FieldSelector, LabelSelector

LabelSelectorLike: TypeAlias = LabelSelector | Mapping[str, str] | str
"""A label selector: its text, such as ``app=web,tier in (back,front)``, labels that must be equal, or a parsed one."""

FieldSelectorLike: TypeAlias = FieldSelector | Mapping[str, str] | str
"""A field selector: its text, such as ``spec.nodeName=worker-1``, fields that must be equal, or a parsed one."""


@final
@attrs.frozen(kw_only=True)
class ListOptions:
    """What one page of a list should hold (``meta/v1 ListOptions``)."""

    label_selector: str | None = None
    """Only objects whose labels match, such as ``app=web``."""
    field_selector: str | None = None
    """Only objects whose fields match, such as ``spec.nodeName=worker-1``."""
    resource_version: str | None = None
    """How fresh: None for the newest state, ``"0"`` for any, otherwise as ``resource_version_match`` says."""
    resource_version_match: str | None = None
    """``NotOlderThan`` or ``Exact``; None lets the server choose."""
    limit: int | None = None
    """How many objects a page may hold; None for all."""
    continue_token: str | None = None
    """Where the page before this one ended."""
    timeout_seconds: int | None = None
    """How long the server may take; None lets it choose."""


def list_params(options: ListOptions) -> dict[str, str]:
    """Render the query of a list; what is None or empty is left out.

    Raises:
        SelectorError: A selector does not parse.
    """
    return _params(
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
    """Render the query of a watch; what is None or empty is left out.

    Raises:
        SelectorError: A selector does not parse.
    """
    return _params(
        watch="true",
        labelSelector=str(LabelSelector.of(label_selector)),
        fieldSelector=str(FieldSelector.of(field_selector)),
        resourceVersion=resource_version,
        # The server takes sendInitialEvents together with this only (KEP-3157).
        resourceVersionMatch=None if send_initial_events is None else "NotOlderThan",
        timeoutSeconds=timeout_seconds,
        allowWatchBookmarks="true" if allow_bookmarks else None,
        sendInitialEvents=None if send_initial_events is None else str(send_initial_events).lower(),
    )


def patch_params(*, field_manager: str | None) -> dict[str, str]:
    """Render the query of a patch; what is None or empty is left out."""
    return _params(fieldManager=field_manager)


def _params(**params: str | int | None) -> dict[str, str]:
    return {name: str(value) for name, value in params.items() if value not in (None, "")}

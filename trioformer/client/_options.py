"""Options for lists and watches, and their query parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, final

import attrs

from ..models import FieldSelector, LabelSelector

LabelSelectorLike: TypeAlias = LabelSelector | Mapping[str, str] | str
"""A label selector.

It is a parsed selector, a string such as ``app=web,tier in (back,front)``, or a mapping of labels to required values.
"""

FieldSelectorLike: TypeAlias = FieldSelector | Mapping[str, str] | str
"""A field selector.

It is a parsed selector, a string such as ``spec.nodeName=worker-1``, or a mapping of fields to required values.
"""

PropagationPolicy: TypeAlias = Literal["Orphan", "Background", "Foreground"]
"""How the server treats the objects that a deleted object owns.

``Orphan`` keeps the owned objects. ``Background`` deletes them after their owner, and ``Foreground`` before it.
"""

FieldValidation: TypeAlias = Literal["Ignore", "Warn", "Strict"]
"""How the server treats unknown and duplicate fields in a write request.

``Ignore`` ignores such fields, ``Warn`` returns a warning for them, and ``Strict`` rejects the request.
"""


@final
@attrs.frozen(kw_only=True)
class ListOptions:
    """The options for one page of a list (``meta/v1 ListOptions``)."""

    label_selector: str | None = None
    """The label selector, such as ``app=web``. The default, None, selects all objects."""
    field_selector: str | None = None
    """The field selector, such as ``spec.nodeName=worker-1``. The default, None, selects all objects."""
    resource_version: str | None = None
    """The resourceVersion of the list. None requests the newest state, and ``"0"`` requests any state.

    Any other value is interpreted according to ``resource_version_match``.
    """
    resource_version_match: str | None = None
    """``NotOlderThan`` or ``Exact``. If None, the server decides how to interpret ``resource_version``."""
    limit: int | None = None
    """The maximum number of objects. If None, the number is not limited."""
    continue_token: str | None = None
    """The continue token of the previous page. The first page has no token."""
    timeout_seconds: int | None = None
    """The maximum time in seconds that the server may take. If None, the server chooses a timeout."""


def list_params(options: ListOptions) -> dict[str, str]:
    """Return the query parameters of a list request, omitting options that are None or empty.

    Raises:
        SelectorError: A selector is not valid.
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
    """Return the query parameters of a watch request, omitting options that are None or empty.

    Raises:
        SelectorError: A selector is not valid.
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
    """Return query parameters as strings, omitting parameters that are None or empty."""
    return {name: str(value) for name, value in params.items() if value not in (None, "")}

"""A record of the writes of a task, for a caller such as a controller that calls ``reconcile``.

Tasks that the task starts inherit the observer.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, final

import attrs


@final
@attrs.frozen(kw_only=True)
class Write:
    """A request for a change of one object, and its outcome."""

    at: float
    """When the response arrived or the request failed, on trio's clock in seconds."""
    method: str
    """The HTTP method."""
    path: str
    """The path of the URL, such as ``/api/v1/namespaces/default/pods/web/status``."""
    code: int | None
    """The HTTP code of the response, or None if no response arrived, so that the outcome is unknown."""
    uid: str = ""
    """The uid of the object in the response.  Empty if the response contains no object."""
    resource_version: str = ""
    """The resourceVersion of the object in the response.  Empty if the response contains no object."""


write_observer: Final[ContextVar[Callable[[Write], None] | None]] = ContextVar("write_observer", default=None)
"""The function that is called after each write of the current task."""

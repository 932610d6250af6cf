"""The request that the current task works on, for log lines.

A context variable holds it while ``reconcile`` runs, so the tasks that a reconcile starts have it too.

Source: controller-runtime ``pkg/internal/controller``, whose loggers have ``controller``, ``name`` and ``reconcileID``.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
from contextvars import ContextVar
from typing import Final, final

import attrs

from .._text import one_line


@final
@attrs.frozen(kw_only=True)
class CurrentRequest:
    """What a worker of a controller works on."""

    controller: str
    """The name of the controller."""
    request: Hashable
    """The request that ``reconcile`` has received."""
    reconcile_id: str
    """Differs from call to call, so that the lines of two reconciles of one object can be told apart."""

    def log_fields(self) -> dict[str, str]:
        """Return the values for ``extra=`` of a log line: ``controller``, ``request`` and ``reconcile_id``."""
        return {
            "controller": self.controller,
            "request": one_line(str(self.request)),
            "reconcile_id": self.reconcile_id,
        }


current: Final[ContextVar[CurrentRequest | None]] = ContextVar("trioformer.controller.current_request", default=None)

_NO_FIELDS: Final = {"controller": "", "request": "", "reconcile_id": ""}


def log_fields() -> Mapping[str, str]:
    """Return the values for ``extra=`` of a line of the library; empty ones outside of a reconcile."""
    found = current.get()
    return _NO_FIELDS if found is None else found.log_fields()


def current_request() -> CurrentRequest | None:
    """Return what the calling task works on; None outside of a reconcile.

    For example, to name a trace, or the author of a write, without passing the request to every function.
    """
    return current.get()


@final
class RequestFilter(logging.Filter):
    """Adds controller, request and id of the reconcile to every log record, whoever writes the line.

    Add it to a handler: the filters of a logger do not see the lines of its children::

        handler = logging.StreamHandler()
        handler.addFilter(RequestFilter())
        handler.setFormatter(logging.Formatter("%(levelname)s %(controller)s %(request)s %(reconcile_id)s %(message)s"))

    The attributes are ``controller``, ``request`` and ``reconcile_id``, empty outside of a reconcile.
    A line that has them by ``extra=`` keeps its own.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the attributes; no record is rejected."""
        for name, value in log_fields().items():
            record.__dict__.setdefault(name, value)
        return True

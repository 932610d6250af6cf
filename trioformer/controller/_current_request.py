"""The request that the current task reconciles, for log lines.

It is in a context variable while ``reconcile`` runs, so tasks that a reconcile starts inherit it.

Source: controller-runtime ``pkg/internal/controller``.  Its loggers have ``controller``, ``name`` and ``reconcileID``.
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
    """The current work of a controller's worker."""

    controller: str
    """The controller's name."""
    request: Hashable
    """The argument of ``reconcile``."""
    reconcile_id: str
    """Unique for each call, to distinguish the log lines of two reconciles of one object."""

    def log_fields(self) -> dict[str, str]:
        """Return the ``extra=`` of a log call: ``controller``, ``request`` and ``reconcile_id``."""
        return {
            "controller": self.controller,
            "request": one_line(str(self.request)),
            "reconcile_id": self.reconcile_id,
        }


current: Final[ContextVar[CurrentRequest | None]] = ContextVar("trioformer.controller.current_request", default=None)

_NO_FIELDS: Final = {"controller": "", "request": "", "reconcile_id": ""}


def log_fields() -> Mapping[str, str]:
    """Return the ``extra=`` of the library's log calls; its values are empty outside of a reconcile."""
    found = current.get()
    return _NO_FIELDS if found is None else found.log_fields()


def current_request() -> CurrentRequest | None:
    """Return the request that the calling task reconciles, or None outside of a reconcile.

    The result has the attributes ``controller``, ``request`` and ``reconcile_id``, which is unique for each call of
    ``reconcile``.  Use them for example to name a trace.
    """
    return current.get()


@final
class RequestFilter(logging.Filter):
    """Adds the current controller, request and reconcile id to every log record.

    Add it to a handler, because the filters of a logger do not receive the records of its children::

        handler = logging.StreamHandler()
        handler.addFilter(RequestFilter())
        handler.setFormatter(logging.Formatter("%(levelname)s %(controller)s %(request)s %(reconcile_id)s %(message)s"))

    The attributes ``controller``, ``request`` and ``reconcile_id`` are empty outside of a reconcile.
    Values in ``extra=`` take precedence.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the attributes, and accept the record."""
        for name, value in log_fields().items():
            record.__dict__.setdefault(name, value)
        return True

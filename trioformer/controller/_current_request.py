"""The request that the current task processes, for log messages.

The request is in a context variable while ``reconcile`` runs, so tasks that ``reconcile`` starts inherit it.

Source: controller-runtime ``pkg/internal/controller``, where loggers have the values ``controller``, ``name`` and
``reconcileID``.
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
    """The request that a worker of a controller currently processes."""

    controller: str
    """The name of the controller."""
    request: Hashable
    """The argument of ``reconcile``."""
    reconcile_id: str
    """An identifier that is unique for each call to ``reconcile``, to distinguish the log messages of two calls."""

    def log_fields(self) -> dict[str, str]:
        """Return the ``extra=`` argument of a log call, with ``controller``, ``request`` and ``reconcile_id``."""
        return {
            "controller": self.controller,
            "request": one_line(str(self.request)),
            "reconcile_id": self.reconcile_id,
        }


current: Final[ContextVar[CurrentRequest | None]] = ContextVar("trioformer.controller.current_request", default=None)

_NO_FIELDS: Final = {"controller": "", "request": "", "reconcile_id": ""}


def log_fields() -> Mapping[str, str]:
    """Return the ``extra=`` argument of log calls; its values are empty strings outside ``reconcile``."""
    found = current.get()
    return _NO_FIELDS if found is None else found.log_fields()


def current_request() -> CurrentRequest | None:
    """Return the request that the current task processes, or None outside ``reconcile``.

    The result has the attributes ``controller``, ``request`` and ``reconcile_id``.  The ``reconcile_id`` is unique for
    each call to ``reconcile``, and can serve as the name of a trace.
    """
    return current.get()


@final
class RequestFilter(logging.Filter):
    """A log filter that adds the current controller, request and ``reconcile_id`` to each log record.

    Add the filter to a handler, because filters of a logger do not receive the records of child loggers::

        handler = logging.StreamHandler()
        handler.addFilter(RequestFilter())
        handler.setFormatter(logging.Formatter("%(levelname)s %(controller)s %(request)s %(reconcile_id)s %(message)s"))

    Outside ``reconcile``, the attributes ``controller``, ``request`` and ``reconcile_id`` of the record are empty
    strings. Attributes that were passed in ``extra=`` are not overwritten.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the attributes to a record, and accept the record."""
        for name, value in log_fields().items():
            record.__dict__.setdefault(name, value)
        return True

"""Controllers: informers add requests to a queue, and workers reconcile the requested objects.

::

    informer ─▶ handler ─▶ predicates ─▶ enqueue ─▶ RateLimitingQueue ─▶ workers: reconcile(request)
                                                        ▲                      │
                                                        └── failed, or RequeueAfter

A :class:`Request` names an object.  The function ``reconcile`` reads the object, and moves its actual state closer to
the desired state.  A :class:`Controller` starts when its caches have synced, and retries failed requests.

- ``_controller.py``: :class:`Controller`
- ``_options.py``: :class:`ControllerOptions`
- ``_controller_run.py``: one run of a controller
- ``_sources.py``: the handlers that add requests, and :data:`LOW_PRIORITY`
- ``_informer_failures.py``: the log of informers that fail during a run
- ``_reconciler.py``: calls to ``reconcile``, and retries
- ``_own_writes.py``: the writes that the next call waits for
- ``_parking.py``: requests that are put aside, and :func:`ensure_paused_condition`
- ``_delays.py``: delays of failed requests
- ``_observers.py``: the observers of a controller
- ``_request.py``: :class:`Request`
- ``_journal.py``: the causes and writes of the last calls
- ``_current_request.py``: :func:`current_request`, and :class:`RequestFilter` for log messages
- ``_results.py``: the results and exceptions of ``reconcile``
- ``_enqueue.py``: functions that return the requests for an object, such as :func:`request_for_owner`
- ``_predicates.py``: filters of events, such as :func:`generation_changed`
- ``_adoption.py``: controller references, and :func:`claim_objects`
- ``_create_or_update.py``: :func:`create_or_update` and :func:`apply_owned`
- ``_finalizers.py``: :func:`ensure_finalizer` and :func:`drop_finalizer`
- ``_expectations.py``: :class:`Expectations` of changes that are not in the caches yet
- ``_statistics.py``: :class:`ControllerStatistics` and :class:`ControllerObserver`
"""

from __future__ import annotations

from ._adoption import AlreadyOwnedError as AlreadyOwnedError
from ._adoption import OwnerGoneError as OwnerGoneError
from ._adoption import claim_objects as claim_objects
from ._adoption import controller_of as controller_of
from ._adoption import controller_reference as controller_reference
from ._adoption import is_controlled_by as is_controlled_by
from ._adoption import set_controller_reference as set_controller_reference
from ._controller import Controller as Controller
from ._create_or_update import apply_owned as apply_owned
from ._create_or_update import create_or_update as create_or_update
from ._current_request import RequestFilter as RequestFilter
from ._current_request import current_request as current_request
from ._enqueue import request_for_owner as request_for_owner
from ._enqueue import requests_by_index as requests_by_index
from ._expectations import Expectations as Expectations
from ._finalizers import drop_finalizer as drop_finalizer
from ._finalizers import ensure_finalizer as ensure_finalizer
from ._options import ControllerOptions as ControllerOptions
from ._parking import ensure_paused_condition as ensure_paused_condition
from ._predicates import annotations_changed as annotations_changed
from ._predicates import generation_changed as generation_changed
from ._predicates import labels_changed as labels_changed
from ._predicates import labels_match as labels_match
from ._predicates import states_match as states_match
from ._request import Request as Request
from ._results import RequeueAfter as RequeueAfter
from ._results import RetryAfter as RetryAfter
from ._results import TerminalError as TerminalError
from ._statistics import ControllerObserver as ControllerObserver

__all__ = [
    "AlreadyOwnedError",
    "Controller",
    "ControllerObserver",
    "ControllerOptions",
    "Expectations",
    "OwnerGoneError",
    "Request",
    "RequestFilter",
    "RequeueAfter",
    "RetryAfter",
    "TerminalError",
    "annotations_changed",
    "apply_owned",
    "claim_objects",
    "controller_of",
    "controller_reference",
    "create_or_update",
    "current_request",
    "drop_finalizer",
    "ensure_finalizer",
    "ensure_paused_condition",
    "generation_changed",
    "is_controlled_by",
    "labels_changed",
    "labels_match",
    "request_for_owner",
    "requests_by_index",
    "set_controller_reference",
    "states_match",
]

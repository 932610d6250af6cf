"""Controllers: informers feed a queue, workers reconcile; and one of several replicas that may do so.

::

    informer ─▶ handler ─▶ predicates ─▶ enqueue ─▶ RateLimitingQueue ─▶ workers: reconcile(request)
                                                        ▲                      │
                                                        └── failed, or RequeueAfter

A :class:`Request` names an object; ``reconcile`` reads its state and brings the world closer to it.
:class:`Controller` does the rest: it begins when all is known, repeats what failed, and ends in good order.
:class:`Expectations` tell it what its caches do not show yet, :func:`claim_objects` what belongs to whom, and an
:class:`EventRecorder` lets people know what it did.
With :func:`run_as_leader` only one of several processes runs something; the others stand by.
"""

from __future__ import annotations

from ._adoption import OwnerGoneError as OwnerGoneError
from ._adoption import claim_objects as claim_objects
from ._adoption import controller_of as controller_of
from ._adoption import controller_reference as controller_reference
from ._adoption import is_controlled_by as is_controlled_by
from ._controller import Controller as Controller
from ._enqueue import Enqueue as Enqueue
from ._enqueue import request_for_any_owner as request_for_any_owner
from ._enqueue import request_for_object as request_for_object
from ._enqueue import request_for_owner as request_for_owner
from ._enqueue import requests_by_index as requests_by_index
from ._expectations import Expectations as Expectations
from ._expectations import Expected as Expected
from ._predicates import Predicate as Predicate
from ._predicates import all_of as all_of
from ._predicates import annotations_changed as annotations_changed
from ._predicates import any_of as any_of
from ._predicates import generation_changed as generation_changed
from ._predicates import labels_changed as labels_changed
from ._predicates import labels_match as labels_match
from ._predicates import none_of as none_of
from ._predicates import resource_version_changed as resource_version_changed
from ._predicates import states_match as states_match
from ._reconciler import DroppedHandler as DroppedHandler
from ._request import Request as Request
from ._results import Reconcile as Reconcile
from ._results import ReconcileDeadlineError as ReconcileDeadlineError
from ._results import ReconcileResult as ReconcileResult
from ._results import RequeueAfter as RequeueAfter
from ._results import TerminalError as TerminalError
from ._sources import LOW_PRIORITY as LOW_PRIORITY
from ._statistics import ControllerObserver as ControllerObserver
from ._statistics import ControllerPhase as ControllerPhase
from ._statistics import ControllerStatistics as ControllerStatistics

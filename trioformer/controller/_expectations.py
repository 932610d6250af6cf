"""Expectations: creations and deletions that a controller has requested and its caches do not show yet.

A cache is behind the server.  A controller that creates three pods and reads its cache immediately finds none, and
creates three more; one that deletes a pod and still sees it may delete another one.
So a controller records the changes that it requests, events of its informers remove these records, and until then it
does not count the objects in its caches::

    with expectations.creating(request):            # recorded before the request is sent, removed if it fails
        await pods.create(pod)

    controller.watch(pods, enqueue=owner, predicates=[expectations.observing(owner)])

    async def reconcile(request):                   # called again after the pod's event
        if expectations.is_satisfied(request):
            ...                                     # the objects in the cache may be counted
        return expectations.requeue(request)        # called again if an event is lost

Deletions are recorded with the object's uid, because there may be two events: when the deletion timestamp is set, and
when the object is deleted.  Creations are counted, because a generated name is unknown before the response.

Source: kube-controller-manager ``pkg/controller/controller_utils.go``, ``ControllerExpectations`` and
``UIDTrackingControllerExpectations``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, Generic, TypeVar, final

import attrs
import trio

from .._text import one_line
from ..cache import Added, Deleted, Notification, Updated
from ..models import KubernetesObject
from ._predicates import Predicate
from ._request import K
from ._results import RequeueAfter

T = TypeVar("T", bound=KubernetesObject)

EXPECTATIONS_PERIOD: Final = 300.0
"""Seconds after which an expectation expires (client-go's ``ExpectationsTimeout``)."""

logger = logging.getLogger("trioformer.controller")


@final
@attrs.frozen
class Expected:
    """The expectations of one request."""

    creations: int
    """How many creations have not been observed."""
    deletions: frozenset[str]
    """The uids of the objects whose deletion has not been observed."""
    expires_at: float
    """When they expire, on trio's clock."""

    def __str__(self) -> str:
        return f"{self.creations} creations and {len(self.deletions)} deletions"


@final
@attrs.define(eq=False, repr=False)
class Expectations(Generic[K]):
    """The creations and deletions that a controller waits to observe, by request.

    A request is satisfied when all its expectations have been observed, when the last one was recorded :attr:`period`
    seconds ago, or when it has no expectations.
    One instance is for one controller, or for several that reconcile the same kind: requests for objects of two kinds
    may be equal.

    All methods are plain functions, and atomic.
    Events without an expectation are ignored.  (In the original an unexpected creation counts for a later expectation.)
    """

    period: float = EXPECTATIONS_PERIOD
    """Seconds after which an expectation expires.

    An event may never arrive: an object that is created and deleted while the watch is broken has none."""
    _expected: dict[K, Expected] = attrs.field(factory=dict, init=False)

    def __repr__(self) -> str:
        return f"<Expectations of {len(self._expected)} requests>"

    def is_satisfied(self, request: K) -> bool:
        """Whether the caches have all requested changes, so that their objects may be counted.

        Expectations that have expired are logged and removed.
        """
        expected = self._expected.get(request)
        if expected is None:
            return True
        if trio.current_time() < expected.expires_at:
            return False
        logger.warning(
            "%s: %s were not observed within %g s; no longer waiting for them",
            one_line(str(request)),
            one_line(str(expected)),
            self.period,
        )
        del self._expected[request]
        return True

    def get(self, request: K) -> Expected | None:
        """Return the expectations of a request; None if it has no expectations."""
        return self._expected.get(request)

    def requeue(self, request: K) -> RequeueAfter | None:
        """Return when to reconcile again in case an event is lost: when the expectations expire; None without any.

        Return this from every reconcile, satisfied or not.  (The original leaves this to the informers' resyncs.)
        """
        expected = self._expected.get(request)
        return None if expected is None else RequeueAfter(max(expected.expires_at - trio.current_time(), 0))

    def forget(self, request: K) -> None:
        """Remove the expectations of a request, for example when the object was deleted."""
        self._expected.pop(request, None)

    # --- recording ---------------------------------------------------------------------------------------------------

    @contextmanager
    def creating(self, request: K) -> Iterator[None]:
        """Expect one creation, which the block requests; an exception in the block removes the expectation.

        A creation without a response may have succeeded.  The next reconcile may not see that object yet and create
        one too many; the one after that sees both.
        """
        self._add(request, creations=1)
        try:
            yield
        except BaseException:
            self.creation_observed(request)
            raise

    @contextmanager
    def deleting(self, request: K, obj: KubernetesObject) -> Iterator[None]:
        """Expect an object's deletion, which the block requests; an exception in the block removes the expectation."""
        self._add(request, deletion=obj.uid)
        try:
            yield
        except BaseException:
            self.deletion_observed(request, obj)
            raise

    def _add(self, request: K, *, creations: int = 0, deletion: str | None = None) -> None:
        before = self._expected.get(request) if not self.is_satisfied(request) else None
        deletions = frozenset() if deletion is None else frozenset({deletion})
        if before is not None:
            creations, deletions = before.creations + creations, before.deletions | deletions
        self._expected[request] = Expected(creations, deletions, trio.current_time() + self.period)

    # --- observing ----------------------------------------------------------------------------------------------------

    def creation_observed(self, request: K) -> None:
        """Count a creation as observed; no effect if none is expected."""
        if (expected := self._expected.get(request)) is not None:
            self._replace(request, attrs.evolve(expected, creations=max(expected.creations - 1, 0)))

    def deletion_observed(self, request: K, obj: KubernetesObject) -> None:
        """Mark an object's deletion as observed; no effect if it is not expected."""
        if (expected := self._expected.get(request)) is not None:
            self._replace(request, attrs.evolve(expected, deletions=expected.deletions - {obj.uid}))

    def _replace(self, request: K, expected: Expected) -> None:
        if expected.creations or expected.deletions:
            self._expected[request] = expected
        else:
            del self._expected[request]

    def observing(self, owners: Callable[[T], Iterable[K]]) -> Predicate[T]:
        """Make a predicate that observes creations and deletions, and passes all events.

        Put it first: after another predicate it does not receive the events that that one rejects.
        Put it into the ``predicates`` of the same :meth:`Controller.watch` that enqueues the owner, so that the
        reconcile after an event finds the expectation met.

        A deletion is observed when the object's deletion timestamp is set.

        Args:
            owners: Returns the requests whose expectations an object concerns, for example `request_for_owner`.
        """

        def observe(event: Notification[T]) -> bool:
            obj = event.new if isinstance(event, Updated) else event.object
            is_being_deleted = isinstance(event, Deleted) or obj.metadata.deletion_timestamp is not None
            for request in owners(obj):
                if isinstance(event, Added):
                    self.creation_observed(request)
                if is_being_deleted:
                    self.deletion_observed(request, obj)
            return True

        return observe

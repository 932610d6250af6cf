"""Expectations: creations and deletions that a controller has requested, but that its caches do not contain yet.

A cache lags behind the server.  If a controller creates three pods and then reads its cache, it may find no pods and
create three more.  If a controller deletes a pod and still finds it in the cache, it may delete another pod. So a
controller
should record its changes, and should not count the objects in its caches until it has received the events::

    with expectations.creating(request):            # records before the request is sent; a failure undoes it
        await pods.create(pod)

    controller.watch(pods, enqueue=owner, predicates=[expectations.observing(owner)])

    async def reconcile(request):                   # called again after the pod's event
        if expectations.is_satisfied(request):
            ...                                     # the objects in the cache can be counted
        return expectations.requeue(request)        # called again if an event is lost

Deletions are recorded by uid, because a deletion may cause two events: the deletion timestamp is set, and later the
object is removed.  Creations are only counted, because a generated name is unknown before the response arrives.

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
"""The time after which an expectation expires, in seconds (client-go's ``ExpectationsTimeout``)."""

logger = logging.getLogger("trioformer.controller")


@final
@attrs.frozen
class Expected:
    """The expectations of one request."""

    creations: int
    """The number of creations that have not been observed."""
    deletions: frozenset[str]
    """The uids of the objects whose deletion has not been observed."""
    expires_at: float
    """The time when the expectations expire, on trio's clock."""

    def __str__(self) -> str:
        return f"{self.creations} creations and {len(self.deletions)} deletions"


@final
@attrs.define(eq=False, repr=False)
class Expectations(Generic[K]):
    """A record of the creations and deletions that a controller waits for, by request.

    The expectations of a request are satisfied when all changes were observed, or when the last expectation was
    recorded :attr:`period` seconds ago. Use a separate instance for each controller, because requests for objects of
    different kinds may be equal.

    Unexpected events are ignored.  (In client-go, an unexpected creation satisfies a later expectation.)
    """

    period: float = EXPECTATIONS_PERIOD
    """The time after which an expectation expires, in seconds.

    An event never arrives if, for example, the object is created and deleted while the watch is interrupted."""
    _expected: dict[K, Expected] = attrs.field(factory=dict, init=False)

    def __repr__(self) -> str:
        return f"<Expectations of {len(self._expected)} requests>"

    def is_satisfied(self, request: K) -> bool:
        """Return whether no expected change is outstanding, so that cached objects can be counted.

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
        """Return the expectations of a request, or None if there are none."""
        return self._expected.get(request)

    def requeue(self, request: K) -> RequeueAfter | None:
        """Return a result of ``reconcile`` that requests another call when the expectations expire.

        Return this value from ``reconcile``, so that a lost event does not block the request.  The value is None if
        there are no expectations.  (Controllers that use client-go rely on resyncs instead.)
        """
        expected = self._expected.get(request)
        return None if expected is None else RequeueAfter(max(expected.expires_at - trio.current_time(), 0))

    def forget(self, request: K) -> None:
        """Remove the expectations of a request, for example after its object was deleted."""
        self._expected.pop(request, None)

    # --- recording ---------------------------------------------------------------------------------------------------

    @contextmanager
    def creating(self, request: K) -> Iterator[None]:
        """Expect a creation that is requested in the block; an exception in the block removes the expectation.

        If the server did not respond, the creation may still have succeeded.  The next call to ``reconcile`` may then
        create a surplus object, which a later call finds.
        """
        self._add(request, creations=1)
        try:
            yield
        except BaseException:
            self.creation_observed(request)
            raise

    @contextmanager
    def deleting(self, request: K, obj: KubernetesObject) -> Iterator[None]:
        """Expect a deletion that is requested in the block; an exception in the block removes the expectation."""
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
        """Record that a creation was observed, if one is expected."""
        if (expected := self._expected.get(request)) is not None:
            self._replace(request, attrs.evolve(expected, creations=max(expected.creations - 1, 0)))

    def deletion_observed(self, request: K, obj: KubernetesObject) -> None:
        """Record that the deletion of an object was observed, if it is expected."""
        if (expected := self._expected.get(request)) is not None:
            self._replace(request, attrs.evolve(expected, deletions=expected.deletions - {obj.uid}))

    def _replace(self, request: K, expected: Expected) -> None:
        if expected.creations or expected.deletions:
            self._expected[request] = expected
        else:
            del self._expected[request]

    def observing(self, owners: Callable[[T], Iterable[K]]) -> Predicate[T]:
        """Return a predicate that records creations and deletions as observed, and accepts all events.

        Pass the predicate as the first of the ``predicates`` to the call to :meth:`Controller.watch` that enqueues the
        owner.
        Otherwise, the predicate would not receive events that other predicates reject, or ``reconcile`` might be
        called before the observation is recorded.

        A deletion counts as observed when the deletion timestamp of the object is set.

        Args:
            owners: A function that returns the requests for the owners of an object, for example the result of
                `request_for_owner`.
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

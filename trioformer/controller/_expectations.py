"""Expectations: creations and deletions that a controller has requested and its caches do not show yet.

A cache lags behind the server.  A controller that creates three pods and then reads its cache may find none, and create
three more.  A controller that deletes a pod and still finds it may delete another one.
So a controller records its changes, and does not count the objects in its caches until the events have arrived::

    with expectations.creating(request):            # records before the request is sent; a failure undoes it
        await pods.create(pod)

    controller.watch(pods, enqueue=owner, predicates=[expectations.observing(owner)])

    async def reconcile(request):                   # called again after the pod's event
        if expectations.is_satisfied(request):
            ...                                     # the objects in the cache can be counted
        return expectations.requeue(request)        # called again if an event is lost

Deletions are recorded by uid, because one deletion can have two events: the deletion timestamp is set, and the object
is removed.  Creations are only counted, because a generated name is unknown before the response.

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
"""Seconds until an expectation expires (client-go's ``ExpectationsTimeout``)."""

logger = logging.getLogger("trioformer.controller")


@final
@attrs.frozen
class Expected:
    """The expectations of one request."""

    creations: int
    """The number of creations that have not been observed."""
    deletions: frozenset[str]
    """The uids of objects whose deletion has not been observed."""
    expires_at: float
    """The time of their expiry on trio's clock."""

    def __str__(self) -> str:
        return f"{self.creations} creations and {len(self.deletions)} deletions"


@final
@attrs.define(eq=False, repr=False)
class Expectations(Generic[K]):
    """The creations and deletions that a controller waits for, by request.

    A request is satisfied when it has no expectations: all were observed, or the last one was recorded :attr:`period`
    seconds ago.
    Use separate instances for controllers of different kinds, because their requests may be equal.

    Events without an expectation are ignored.  (In client-go, an unexpected creation counts for a later expectation.)
    """

    period: float = EXPECTATIONS_PERIOD
    """Seconds until an expectation expires.

    An event may never arrive, for example if the object is created and deleted while the watch is broken."""
    _expected: dict[K, Expected] = attrs.field(factory=dict, init=False)

    def __repr__(self) -> str:
        return f"<Expectations of {len(self._expected)} requests>"

    def is_satisfied(self, request: K) -> bool:
        """Return whether the caches have all requested changes, so that their objects can be counted.

        Expired expectations are logged and removed.
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
        """Return the expectations of a request, or None: ``creations``, ``deletions`` (uids) and ``expires_at``."""
        return self._expected.get(request)

    def requeue(self, request: K) -> RequeueAfter | None:
        """Return when to reconcile again if an event is lost: when the expectations expire; None without expectations.

        Return this from every reconcile.  (client-go relies on the informers' resyncs.)
        """
        expected = self._expected.get(request)
        return None if expected is None else RequeueAfter(max(expected.expires_at - trio.current_time(), 0))

    def forget(self, request: K) -> None:
        """Remove the expectations of a request, for example when the object was deleted."""
        self._expected.pop(request, None)

    # --- recording ---------------------------------------------------------------------------------------------------

    @contextmanager
    def creating(self, request: K) -> Iterator[None]:
        """Expect one creation, requested in the block; an exception in the block removes the expectation.

        A creation without a response may have succeeded.  Then the next reconcile may create one object too many, and
        the following one finds both.
        """
        self._add(request, creations=1)
        try:
            yield
        except BaseException:
            self.creation_observed(request)
            raise

    @contextmanager
    def deleting(self, request: K, obj: KubernetesObject) -> Iterator[None]:
        """Expect an object's deletion, requested in the block; an exception in the block removes the expectation."""
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
        """Record that a creation was observed; no effect if none is expected."""
        if (expected := self._expected.get(request)) is not None:
            self._replace(request, attrs.evolve(expected, creations=max(expected.creations - 1, 0)))

    def deletion_observed(self, request: K, obj: KubernetesObject) -> None:
        """Record that an object's deletion was observed; no effect if it is not expected."""
        if (expected := self._expected.get(request)) is not None:
            self._replace(request, attrs.evolve(expected, deletions=expected.deletions - {obj.uid}))

    def _replace(self, request: K, expected: Expected) -> None:
        if expected.creations or expected.deletions:
            self._expected[request] = expected
        else:
            del self._expected[request]

    def observing(self, owners: Callable[[T], Iterable[K]]) -> Predicate[T]:
        """Return a predicate that observes creations and deletions, and accepts all events.

        Put it first in the ``predicates`` of the :meth:`Controller.watch` that enqueues the owner.  Otherwise it misses
        events that other predicates reject, or the reconcile runs before the observation.

        A deletion is observed when the object's deletion timestamp is set.

        Args:
            owners: Returns the requests of an object's owners, for example `request_for_owner`.
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

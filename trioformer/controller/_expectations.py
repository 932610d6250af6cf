"""What a controller has asked for and its informers have not told it yet.

A cache is behind the server.  A controller that creates three pods and looks into its cache at once finds none, and
creates three more; one that deletes the wrong one of two because it still sees both has lost a good one.
So it writes down what it asks for, its informers' events strike that out, and until then it does not count what is
there::

    with expectations.creating(request):            # before the request is sent, and taken back if it fails
        await pods.create(pod)

    controller.watch(pods, enqueue=owner, predicates=[expectations.observing(owner)])

    async def reconcile(request):                   # again when the pod's event comes
        if expectations.is_satisfied(request):
            ...                                     # now the cache may be counted
        return expectations.requeue(request)        # again when an event was lost

Deletions are known by the object's uid, since one object can be seen to go twice: when it is marked, and when it is
gone.  Creations are counted, since a generated name is not known before the answer comes.

Source: kube-controller-manager ``pkg/controller/controller_utils.go``, ``ControllerExpectations`` and
``UIDTrackingControllerExpectations``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypeVar, final

import attrs
import trio

from ..cache import Added, Deleted, Notification, Updated
from ..models import KubernetesObject
from ._enqueue import Enqueue
from ._predicates import Predicate
from ._request import Request
from ._results import RequeueAfter

T = TypeVar("T", bound=KubernetesObject)

EXPECTATIONS_PERIOD: Final = 300.0
"""Seconds after which what was not observed is no longer waited for (client-go's ``ExpectationsTimeout``)."""

logger = logging.getLogger("trioformer.controller")


@final
@attrs.frozen
class Expected:
    """What is still waited for, for one request."""

    creations: int
    """How many creations have not been observed."""
    deletions: frozenset[str]
    """The uids of the objects whose deletion has not been observed."""
    expires_at: float
    """Until when, on trio's clock."""

    def __str__(self) -> str:
        return f"{self.creations} creations and {len(self.deletions)} deletions"


@final
@attrs.define(eq=False, repr=False)
class Expectations:
    """The creations and deletions that a controller waits to observe, by request.

    A request is satisfied when all that was asked for has been observed, when the last of it was asked for
    :attr:`period` seconds ago, or when nothing was asked for.
    It belongs to a controller, or to several that reconcile the same kind; requests for objects of two kinds could be
    equal.

    Everything but the time is decided between two checkpoints, by plain functions.
    What is observed though nobody has asked for it is ignored.  (In the original a creation too many counts against one
    that is asked for later.)
    """

    period: float = EXPECTATIONS_PERIOD
    """Seconds until what was not observed is no longer waited for.

    What came and went again before a handler was told of it, as while a watch is broken, is never told."""
    _expected: dict[Request, Expected] = attrs.field(factory=dict, init=False)

    def __repr__(self) -> str:
        return f"<Expectations of {len(self._expected)} requests>"

    def is_satisfied(self, request: Request) -> bool:
        """Whether the caches have all that was asked for, so that they may be counted.

        What has not been observed in time is told in the log and forgotten.
        """
        expected = self._expected.get(request)
        if expected is None:
            return True
        if trio.current_time() < expected.expires_at:
            return False
        logger.warning("%s: %s were not observed within %g s; going on without", request, expected, self.period)
        del self._expected[request]
        return True

    def get(self, request: Request) -> Expected | None:
        """Tell what is still waited for; None if nothing is."""
        return self._expected.get(request)

    def requeue(self, request: Request) -> RequeueAfter | None:
        """Say when to look again, should an event be lost: when what is expected expires; None if nothing is.

        To be returned from every reconcile, satisfied or not.  (The original leaves this to the informers' resyncs.)
        """
        expected = self._expected.get(request)
        return None if expected is None else RequeueAfter(max(expected.expires_at - trio.current_time(), 0))

    def forget(self, request: Request) -> None:
        """Wait for nothing any more, as when the object is gone."""
        self._expected.pop(request, None)

    # --- what is asked for --------------------------------------------------------------------------------------------

    @contextmanager
    def creating(self, request: Request) -> Iterator[None]:
        """Expect one creation, which the block asks for; if it raises, it is expected no longer.

        A creation whose answer was lost may have been carried out.  The next reconcile may not see it yet and create
        one too many; the one after that sees both.
        """
        self._add(request, creations=1)
        try:
            yield
        except BaseException:
            self.creation_observed(request)
            raise

    @contextmanager
    def deleting(self, request: Request, obj: KubernetesObject) -> Iterator[None]:
        """Expect an object's deletion, which the block asks for; if it raises, it is expected no longer."""
        self._add(request, deletion=obj.uid)
        try:
            yield
        except BaseException:
            self.deletion_observed(request, obj)
            raise

    def _add(self, request: Request, *, creations: int = 0, deletion: str | None = None) -> None:
        before = self._expected.get(request) if not self.is_satisfied(request) else None
        deletions = frozenset() if deletion is None else frozenset({deletion})
        if before is not None:
            creations, deletions = before.creations + creations, before.deletions | deletions
        self._expected[request] = Expected(creations, deletions, trio.current_time() + self.period)

    # --- what is observed ---------------------------------------------------------------------------------------------

    def creation_observed(self, request: Request) -> None:
        """Strike out a creation; does nothing if none is expected."""
        if (expected := self._expected.get(request)) is not None:
            self._replace(request, attrs.evolve(expected, creations=max(expected.creations - 1, 0)))

    def deletion_observed(self, request: Request, obj: KubernetesObject) -> None:
        """Strike out an object's deletion; does nothing if that is not expected."""
        if (expected := self._expected.get(request)) is not None:
            self._replace(request, attrs.evolve(expected, deletions=expected.deletions - {obj.uid}))

    def _replace(self, request: Request, expected: Expected) -> None:
        if expected.creations or expected.deletions:
            self._expected[request] = expected
        else:
            del self._expected[request]

    def observing(self, owners: Enqueue[T]) -> Predicate[T]:
        """Make a predicate that strikes out what events tell of; it passes all of them.

        Put it first: behind another one it would not see what that leaves out.
        It belongs into the ``predicates`` of the same :meth:`Controller.watch` that enqueues the owner, so that the
        reconcile which follows an event finds its expectation met.

        An object is observed to go when its deletion timestamp is set.

        Args:
            owners: From an object to the requests whose expectations it concerns, such as `request_for_owner`.
        """

        def observe(event: Notification[T]) -> bool:
            obj = event.new if isinstance(event, Updated) else event.object
            is_going = isinstance(event, Deleted) or obj.metadata.deletion_timestamp is not None
            for request in owners(obj):
                if isinstance(event, Added):
                    self.creation_observed(request)
                if is_going:
                    self.deletion_observed(request, obj)
            return True

        return observe

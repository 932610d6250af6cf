"""Waiting for one object (``kubectl wait``)."""

from __future__ import annotations

import inspect
import logging
import random
from collections.abc import Callable
from typing import Generic, TypeVar, final, overload

import attrs
import trio

from .._retry import (
    HEALTHY_AFTER,
    REQUEST_ERRORS,
    Backoff,
    BackoffPolicy,
    ErrorClass,
    WatchErrorHandler,
    classify_error,
    retry_after,
)
from ..client import Api, ObjectList
from ..errors import ExpiredError, NotFoundError, StatusDetails, TrioformerError
from ..models import FieldSelector, KubernetesObject
from ._conditions import Condition, Deletion
from ._resuming_watch import resuming_watch

T = TypeVar("T", bound=KubernetesObject)

logger = logging.getLogger("trioformer.watchtools")


@overload
async def wait_for(
    api: Api[T],
    name: str,
    condition: Deletion,
    *,
    backoff: BackoffPolicy | None = None,
    on_retry: WatchErrorHandler | None = None,
) -> None: ...
@overload
async def wait_for(
    api: Api[T],
    name: str,
    condition: Callable[[T], bool],
    *,
    missing_ok: bool = False,
    backoff: BackoffPolicy | None = None,
    on_retry: WatchErrorHandler | None = None,
) -> T: ...


async def wait_for(
    api: Api[T],
    name: str,
    condition: Deletion | Callable[[T], bool],
    *,
    missing_ok: bool = False,
    backoff: BackoffPolicy | None = None,
    on_retry: WatchErrorHandler | None = None,
) -> T | None:
    """Wait until an object meets a condition, as ``kubectl wait`` does.

    The object is listed, then watched across the ends of watches and the failures of the server, and listed again when
    the server has forgotten what came next.
    What is judged is always a state that the server has told: a watch that ends tells nothing.
    Every state that is seen is judged, in order; after a list anew, those in between are not.

    Bring a deadline, since some conditions are never met::

        with trio.fail_after(60):
            pod = await wait_for(pods, "web-0", has_condition("Ready"))

    Args:
        api: Kind and namespace.
        name: Which object.
        condition: :func:`has_condition`, :func:`has_field`, :func:`created`, :func:`deleted`, or any function that is
            given an object and says whether it will do; what it raises leaves ``wait_for`` as it is.
        missing_ok: Whether to wait for the object too, should there be none, and for its successor, should it be
            deleted.  If not, either is an error, as the object that was meant cannot meet the condition any more.
        backoff: The delays between tries.
        on_retry: Told of every failure that is gone on from; by default they are logged.

    Returns:
        The object as it was when it met the condition; None for a deletion.

    Raises:
        NotFoundError: There is no such object, it was deleted or replaced while it was waited for, or the server does
            not know the kind.
        StatusError: Another answer that waiting does not mend: 400, 401, 403 or 405.  A note says what was waited for.
        ConnectionFailedError: The server's certificate does not verify.
        DecodeError: The server keeps sending a frame that is no event.
        ValueError: The name is empty, or the kind has namespaces and the API is that of all.

    Cancellation:
        At any time; nothing is left.

    Ownership:
        No task is started.
    """
    if not name:
        raise ValueError("the name of what is waited for must not be empty")
    if api.namespace is None and api.resource.namespaced:
        raise ValueError(f"{api.resource} belong to a namespace, and this is the API of all; give it one")
    if isinstance(condition, Condition):
        missing_ok = missing_ok or condition.missing_ok
    rng = random.Random()
    waiting = _Waiting(api, name, condition, missing_ok, on_retry, Backoff(backoff or BackoffPolicy(), rng=rng), rng)
    try:
        return await waiting.run()
    except REQUEST_ERRORS as error:
        error.add_note(f"while waiting for {waiting}")
        raise


@final
@attrs.define(eq=False, str=False)
class _Waiting(Generic[T]):
    """One call of :func:`wait_for`."""

    _api: Api[T]
    _name: str
    _condition: Deletion | Callable[[T], bool]
    _missing_ok: bool
    _on_retry: WatchErrorHandler | None
    _backoff: Backoff
    _random: random.Random
    _was_seen: bool = False
    _uid: str = ""
    """Of the object that is meant, once one was seen."""

    async def run(self) -> T | None:
        """List and watch until the condition is met."""
        selector = FieldSelector.of({"metadata.name": self._name})
        while True:
            listing = await self._list(selector)
            found = next((obj for obj in listing if obj.name == self._name), None)
            if self._is_met_by(found):
                return self._result(found)
            began = trio.current_time()
            async with resuming_watch(
                self._api,
                resource_version=listing.resource_version,
                field_selector=selector,
                backoff=self._backoff.policy,
                on_retry=self._on_retry,
            ) as events:
                while True:
                    try:
                        event = await anext(events)
                    except ExpiredError as error:
                        self._report(error)
                        break
                    if event.object.name != self._name:
                        continue
                    found = None if event.type == "DELETED" else event.object
                    if self._is_met_by(found):
                        return self._result(found)
            # A server whose lists are too old for its own watches must not be asked in a tight loop.
            if trio.current_time() - began >= HEALTHY_AFTER:
                self._backoff.reset()
            await trio.sleep(self._backoff.next_delay())

    async def _list(self, selector: FieldSelector) -> ObjectList[T]:
        while True:
            try:
                return await self._api.list(field_selector=selector, page_size=None)
            except REQUEST_ERRORS as error:
                if classify_error(error) is ErrorClass.PERMANENT:
                    raise
                delay = self._backoff.next_delay(at_least=retry_after(error, self._random))
                self._report(error)
            await trio.sleep(delay)

    def _is_met_by(self, obj: T | None) -> bool:
        """Judge a state of the object; None is that there is none."""
        if isinstance(self._condition, Deletion):
            return self._is_deletion(self._condition, obj)
        if not self._missing_ok:
            self._check_presence(obj)
        if obj is None:
            return False
        self._uid, self._was_seen = obj.uid, True
        answer: object = self._condition(obj)
        if inspect.iscoroutine(answer):
            answer.close()
            raise TypeError(f"the condition {_words(self._condition)} must be a plain function, not an async one")
        return bool(answer)

    def _is_deletion(self, condition: Deletion, obj: T | None) -> bool:
        if obj is None:
            return True
        if not self._was_seen:
            self._uid, self._was_seen = condition.uid or obj.uid, True
        return obj.uid != self._uid

    def _check_presence(self, obj: T | None) -> None:
        if obj is None:
            problem = "it was deleted" if self._was_seen else "there is none"
        elif self._was_seen and obj.uid != self._uid:
            problem = "it was deleted, and another one has its name"
        else:
            return
        resource = self._api.resource
        raise NotFoundError(
            problem,
            code=404,
            reason="NotFound",
            details=StatusDetails(name=self._name, group=resource.group, kind=resource.plural, uid=self._uid),
            where=f"wait for {self}",
        )

    def _result(self, obj: T | None) -> T | None:
        return None if isinstance(self._condition, Deletion) else obj

    def _report(self, error: TrioformerError) -> None:
        if self._on_retry is not None:
            self._on_retry(error)
        elif isinstance(error, ExpiredError):
            logger.info("wait for %s: the watch's resourceVersion has expired; listing again", self)
        else:
            logger.warning("wait for %s: %s", self, error)

    def __str__(self) -> str:
        place = f" in namespace {self._api.namespace}" if self._api.namespace is not None else ""
        return f"{self._api.resource}/{self._name}{place}: {_words(self._condition)}"


def _words(condition: object) -> str:
    if isinstance(condition, Condition | Deletion):
        return str(condition)
    name = getattr(condition, "__qualname__", None)
    return name if isinstance(name, str) else repr(condition)

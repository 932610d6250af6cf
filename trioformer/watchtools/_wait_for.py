"""Waiting until one object meets a condition (``kubectl wait``)."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Generic, TypeVar, final, overload

import attrs

from .._retry import (
    REQUEST_ERRORS,
    BackoffPolicy,
    Outcome,
    Pacing,
    Wait,
    WatchErrorHandler,
    is_permanent,
    log_failure,
    outcome_of,
    retry_after,
)
from .._surroundings import new_generator
from ..client import Api, ObjectList, Undecodable
from ..client._internal import without_retries
from ..errors import ExpiredError, LimitExceededError, NotFoundError, TrioformerError
from ..errors._internal import StatusDetails
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

    The object is listed and then watched. A watch that ends or fails is resumed. When the server no longer has the next
    event, the object is listed again.

    The condition is checked for each state that the server sends, in order. States between the end of a watch and the
    new list may be missed. If a state is undecodable or too large, the error is passed to ``on_retry``, and the object
    is listed again.

    Set a deadline, because the condition may never be met::

        with trio.fail_after(60):
            pod = await wait_for(pods, "web-0", has_condition("Ready"))

    Args:
        api: The API for the kind and namespace of the object.
        name: The name of the object.
        condition: :func:`has_condition`, :func:`has_field`, :func:`created`, :func:`deleted`, or a function that takes
            an object and returns a bool. Exceptions that the function raises propagate unchanged.
        missing_ok: Whether to keep waiting while no object with this name exists, even after a deletion. By default, a
            missing object is an error.
        backoff: The delays between requests after failures. The default, None, uses the defaults of
            :class:`BackoffPolicy`.
        on_retry: A function that is called with each error that leads to a retry or to a new list. By default, each
            cause is logged immediately, and then once a minute.

    Returns:
        The object in the state that meets the condition, or None for a deletion.

    Raises:
        NotFoundError: The object does not exist, or was deleted or replaced during the wait. This error is also raised
            if the server does not serve the kind.
        StatusError: The server responded with another permanent error: 400, 401, 403, 405 or 422. A note on the error
            names the object and the condition.
        ConnectionFailedError: The server's certificate is not valid.
        DecodeError: The server sent an object without a resourceVersion, or keeps sending an undecodable ERROR event.
        ValueError: The name is empty, or the kind is namespaced and ``api`` has no namespace.

    Cancellation:
        The wait can be cancelled at any time. The connection is closed.

    Ownership:
        No task is started.
    """
    if not name:
        raise ValueError("wait_for() requires a name, not an empty string")
    if api.namespace is None and api.resource.namespaced:
        raise ValueError(f"wait_for() requires an Api with a namespace, because {api.resource} are namespaced")
    if isinstance(condition, Condition):
        missing_ok = missing_ok or condition.missing_ok
    wait = _Wait(api, name, condition, missing_ok, on_retry, backoff, Pacing(backoff, new_generator()))
    try:
        return await wait.run()
    except REQUEST_ERRORS as error:
        error.add_note(f"while waiting for {wait}")
        raise


class _UndecodableError(Exception):
    """Raised for an undecodable event to end the watch. The object is then listed again."""

    def __init__(self, found: Undecodable) -> None:
        super().__init__(found.error)
        self.found: Undecodable = found


@final
@attrs.define(eq=False, str=False)
class _Wait(Generic[T]):
    """The state of one call to :func:`wait_for`."""

    _api: Api[T]
    _name: str
    _condition: Deletion | Callable[[T], bool]
    _missing_ok: bool
    _on_retry: WatchErrorHandler | None
    _backoff: BackoffPolicy | None
    _pacing: Pacing
    _was_seen: bool = False
    _uid: str = ""
    """The object's uid; empty until a state of the object has been decoded."""

    async def run(self) -> T | None:
        """List and watch the object until the condition is met."""
        selector = FieldSelector.of({"metadata.name": self._name})
        while True:
            listing, undecodable = await self._list(selector)
            found = next((obj for obj in listing if obj.name == self._name), None)
            if found is None and undecodable:
                self._was_seen = True
                self._report(undecodable[0].error)
            elif self._is_met_by(found):
                return self._result(found)
            self._pacing.record_request()
            self._pacing.record_accepted()
            async with resuming_watch(
                self._api,
                resource_version=listing.resource_version,
                field_selector=selector,
                backoff=self._backoff,
                on_retry=self._on_retry,
                on_undecodable=self._raise_undecodable,
            ) as events:
                while True:
                    try:
                        event = await anext(events)
                    except (ExpiredError, LimitExceededError) as error:  # a list may contain an object of any size
                        self._report(error)
                        break
                    except _UndecodableError as error:
                        self._was_seen = True
                        self._report(error.found.error)
                        is_deletion = error.found.event_type == "DELETED" and error.found.key
                        if is_deletion and self._is_met_by(None):
                            return self._result(None)
                        break
                    if event.object.name != self._name:
                        continue
                    found = None if event.type == "DELETED" else event.object
                    if self._is_met_by(found):
                        return self._result(found)
            # Without this delay, lists that are too old for the server's watches would cause a tight loop of requests.
            self._pacing.set_wait(Wait.BACK_OFF)
            await self._pacing.sleep(self._api.wait_to_retry)

    async def _list(self, selector: FieldSelector) -> tuple[ObjectList[T], list[Undecodable]]:
        """List the object, and return the list and those undecodable items that may be the object."""
        pacing = self._pacing
        while True:
            pacing.record_request()
            bad: list[Undecodable] = []
            try:
                api = without_retries(self._api)
                listing = await api.list(field_selector=selector, page_size=None, on_undecodable=bad.append)
                return listing, [found for found in bad if self._may_be_the_object(found)]
            except REQUEST_ERRORS as error:
                if is_permanent(error):
                    raise
                wait = Wait.RECONNECT if outcome_of(error) is Outcome.LOST else Wait.BACK_OFF
                pacing.set_wait(wait, retry_after(error, pacing.rng))
                self._report(error)
            await pacing.sleep(self._api.wait_to_retry)

    def _may_be_the_object(self, found: Undecodable) -> bool:
        return found.key in ("", self._name, f"{self._api.namespace}/{self._name}")

    def _raise_undecodable(self, found: Undecodable) -> None:
        if self._may_be_the_object(found):
            raise _UndecodableError(found)

    def _is_met_by(self, obj: T | None) -> bool:
        """Return whether a state of the object meets the condition.

        ``obj`` is None if the object does not exist.
        """
        if isinstance(self._condition, Deletion):
            return self._is_deletion(self._condition, obj)
        if not self._missing_ok:
            self._check_presence(obj)
        if obj is None:
            return False
        self._uid, self._was_seen = obj.uid, True
        result: object = self._condition(obj)
        if inspect.iscoroutine(result):
            result.close()
            raise TypeError(f"the condition {_describe(self._condition)} must be a plain function, not an async one")
        return bool(result)

    def _is_deletion(self, condition: Deletion, obj: T | None) -> bool:
        if obj is None:
            return True
        if not self._uid:
            self._uid, self._was_seen = condition.uid or obj.uid, True
        return obj.uid != self._uid

    def _check_presence(self, obj: T | None) -> None:
        if obj is None:
            problem = "the object was deleted" if self._was_seen else "the object does not exist"
        elif self._uid and obj.uid != self._uid:
            problem = "the object was deleted, and a new one has the same name"
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
            log_failure(logger, error, f"wait for {self}: ")

    def __str__(self) -> str:
        place = f" in namespace {self._api.namespace}" if self._api.namespace is not None else ""
        return f"{self._api.resource}/{self._name}{place}: {_describe(self._condition)}"


def _describe(condition: object) -> str:
    if isinstance(condition, Condition | Deletion):
        return str(condition)
    name = getattr(condition, "__qualname__", None)
    return name if isinstance(name, str) else repr(condition)

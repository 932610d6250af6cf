"""The cache of a door: an informer that runs as a job, and reads that fail when the informer has ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Generic, TypeVar

from .._suggestions import describe
from .._util import first_leaf
from ..cache import InformerState, Lister, SharedInformer
from ..cache._internal import Quarantined
from ..client import Client, ObjectRef, open_client
from ..client._internal import FieldSelectorLike, LabelSelectorLike
from ..errors import CacheNotSyncedError
from ..kubeconfig import ClusterConfig
from ..models import KubernetesObject
from ._jobs import Job

R = TypeVar("R")
T = TypeVar("T", bound=KubernetesObject)


class DoorCache(Generic[T]):
    """The part of a cache that both doors share.

    All methods are synchronous and send no requests, as those of :class:`~trioformer.Lister`.  ``if cache:`` asks for
    its length, so compare a cache with None by ``is``.

    Raises:
        CacheNotSyncedError: The cache has not synced, or its informer has ended, so that the objects would stay as they
            are for ever.
    """

    def __init__(self, informer: SharedInformer[T], job: Job[None], lister: Lister[T] | None = None) -> None:
        self._informer = informer
        self._reads = informer.lister if lister is None else lister
        self._job = job

    def __repr__(self) -> str:
        return repr(self._reads).replace("<Lister", f"<{type(self).__name__}", 1)

    @property
    def failure(self) -> BaseException | None:
        """The exception that ended the informer, or None."""
        error = self._job.error
        return first_leaf(error) if isinstance(error, Exception) else error

    @property
    def state(self) -> InformerState:
        """The phase of the informer, its last error, and the age of its data."""
        return self._ask(lambda: self._informer.state)

    @property
    def has_synced(self) -> bool:
        """Whether the cache contains the first list and is kept up to date; see :attr:`SharedInformer.has_synced`."""
        return not self._job.has_ended and self._ask(lambda: self._informer.has_synced)

    def _ask(self, function: Callable[[], R]) -> R:
        """Call a function that reads trio's clock unless the informer has ended."""
        return function()

    def _raise_failure(self) -> None:
        if self.failure is not None:
            self._check_readable()

    def _check_readable(self) -> None:
        if self._job.has_ended:
            failure = self.failure
            because = "the cache has been closed" if failure is None else f"its informer ended: {failure}"
            raise CacheNotSyncedError(f"{self!r} is no longer kept up to date, because {because}") from failure

    @property
    def _lister(self) -> Lister[T]:
        self._check_readable()
        if not self._informer._synced.is_set():
            state = self.state
            raise CacheNotSyncedError(f"{self!r}: {state}; before reads, wait for wait_until_synced()") from state.error
        return self._reads

    def get(self, name: str | ObjectRef | T, *, namespace: str | None = None, allow_stale: bool = False) -> T | None:
        """Return the object with this name, or None if it is not in the cache; see :meth:`Lister.get`."""
        return self._lister.get(name, namespace=namespace, allow_stale=allow_stale)

    def list(
        self,
        *,
        label_selector: LabelSelectorLike | None = None,
        field_selector: FieldSelectorLike | None = None,
        namespace: str | None = None,
    ) -> tuple[T, ...]:
        """Return the objects that match the selectors; see :meth:`Lister.list`."""
        return self._lister.list(label_selector=label_selector, field_selector=field_selector, namespace=namespace)

    def by_index(self, index: str, value: str) -> tuple[T, ...]:
        """Return the objects for which the index function ``index`` returned ``value``."""
        return self._lister.by_index(index, value)

    def index_keys(self, index: str, value: str) -> tuple[str, ...]:
        """Return the keys of the objects for which the index function ``index`` returned ``value``."""
        return self._lister.index_keys(index, value)

    def index_values(self, index: str) -> tuple[str, ...]:
        """Return all values that the index function ``index`` returned for the stored objects."""
        return self._lister.index_values(index)

    def quarantined(self) -> Mapping[str, Quarantined]:
        """Return a new mapping from keys to the objects in quarantine; see :meth:`Lister.quarantined`."""
        return self._lister.quarantined()

    def __getitem__(self, key: str) -> T:
        return self._lister[key]

    def __contains__(self, key: object) -> bool:
        return key in self._lister

    def __iter__(self) -> Iterator[T]:
        return iter(self._lister)

    def __len__(self) -> int:
        return len(self._lister)


def client_of_cache(
    client: Any,
    kind: type[Any],
    config: ClusterConfig | None,
    kubeconfig: str | os.PathLike[str] | None,
    context: str | None,
) -> AbstractAsyncContextManager[Client, bool | None]:
    """Return a context manager for the client that was passed to a function of a door, or else for a new one."""
    if client is None:
        return open_client(config, kubeconfig=kubeconfig, context=context)
    if not isinstance(client, kind):
        where = kind.__module__.rpartition(".")[0]
        raise TypeError(f"client must be a Client from {where}.open_client(), not {describe(client)}")
    if (config, kubeconfig, context) != (None, None, None):
        raise ValueError("pass either client, or config, kubeconfig and context, not both")
    return nullcontext(client._target)

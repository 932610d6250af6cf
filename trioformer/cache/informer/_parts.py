"""The parts of a divided cache, which begin and end while the cache runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

import trio

from ...models import KubernetesObject
from ..reflector._list_watch import ApiListWatch, ListWatch
from ._shared_informer import SharedInformer

if TYPE_CHECKING:
    from ..store._division import Share

T = TypeVar("T", bound=KubernetesObject)


def share_of(informer: SharedInformer[Any]) -> Share | None:
    """Return the share of a divided cache, or None if the cache is not divided."""
    return informer._reflectors.share


@final
class Part(Generic[T]):
    """A part of a divided cache, which is open from its creation until :meth:`run` ends.

    Args:
        informer: The informer, which may be started later.
        name: The name of the part.
        source: The source of the objects of the part.
        written: The same source, which tells which writes the part will show.  Its query is not considered.
    """

    def __init__(
        self, informer: SharedInformer[T], name: str, source: ListWatch[T], written: ApiListWatch[T] | None = None
    ) -> None:
        self._informer, self._name = informer, name
        self._written = {} if written is None else {name: written}
        self._reflector = informer._reflectors.open_part(name, source)
        informer._versions.open(name)

    async def run(self) -> None:
        """Keep the part up to date until cancelled or until the informer has stopped.

        Then the objects of the part are removed from the cache with `Released`.
        """
        informer, name = self._informer, self._name
        try:
            with informer._showing_writes(self._written):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._reflector.run, name=f"informer of {informer._name}: reflector of {name}")
                    await informer.wait_until_stopped()
                    nursery.cancel_scope.cancel()
        except* trio.ClosedResourceError:
            if not informer._stopped.is_set():
                raise
        finally:
            self.close()

    def close(self) -> None:
        """Close a part, and queue the removal of its objects."""
        informer, name = self._informer, self._name
        informer._reflectors.close(name)
        informer._versions.remove(name)
        informer._fifo.release_part(name)

    async def wait_until_listed(self) -> None:
        """Wait until the cache contains the first list of the part, or the informer has stopped."""
        await self._informer._versions.wait_until_listed(self._name)

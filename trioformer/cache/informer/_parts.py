"""The parts of a divided cache, which begin and end while the cache runs."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, final

from ._shared_informer import SharedInformer

if TYPE_CHECKING:
    from ..store._division import Share


def share_of(informer: SharedInformer[Any]) -> Share | None:
    """Return the share of a divided cache, or None if the cache is not divided."""
    divided = informer._reflectors.divided
    return None if divided is None else divided.division


@final
class Part:
    """A part of a divided cache, from its creation to :meth:`close`.

    Args:
        informer: The informer, which may be started later.
        name: The name of the part.
    """

    def __init__(self, informer: SharedInformer[Any], name: str) -> None:
        divided = informer._reflectors.divided
        assert divided is not None  # parts are those of divided caches
        self._informer, self._name, self._source = informer, name, divided
        divided.open(name)
        informer._versions.open(name)
        self._showing_writes = ExitStack()
        if not informer._stopped.is_set():
            self._showing_writes.enter_context(informer._showing_writes({name: divided.plain}))
            informer._part_writes[name] = self._showing_writes

    def close(self) -> None:
        """Queue the removal of the objects of the part from the cache, with `Released`."""
        self._source.close(self._name)
        self._informer._versions.remove(self._name)
        self._informer._fifo.release_part(self._name)
        self._informer._part_writes.pop(self._name, None)
        self._showing_writes.close()

    @property
    def is_listed(self) -> bool:
        """Whether the cache contains the first list of the part."""
        return not self._informer._versions.is_unlisted(self._name)

    async def wait_until_listed(self) -> None:
        """Wait until the cache contains the first list of the part, or the informer has stopped."""
        await self._informer._versions.wait_until_listed(self._name)

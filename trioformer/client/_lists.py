"""Lists: what a page holds, and how one is read while it arrives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, TypeVar, final

import attrs

from .._util import Slices
from ..errors import DecodeError, UnexpectedResponseError
from ..models import KubernetesObject
from ..transport._internal import BLOCK, ByteStream, ListSplitter
from ._responses import HINT
from ._undecodable import UndecodableHandler, undecodable_item
from ._wire_format import WireFormat

T = TypeVar("T", bound=KubernetesObject)

PAGE_SIZE: Final = 500
"""Objects that a page of a list may hold (client-go ``tools/pager``)."""


@final
@attrs.frozen(kw_only=True)
class ObjectList(Generic[T]):
    """The objects of a list, at one version of the collection; iterable, with a length."""

    items: tuple[T, ...] = attrs.field(repr=lambda items: f"<{len(items)} objects>")
    """The objects, in the server's order."""
    resource_version: str
    """The version of the collection; a watch from here sees everything that has happened since."""
    continue_token: str = ""
    """What to ask for the next page with; empty when there is none."""
    remaining_item_count: int | None = None
    """How many objects are left for further pages, if the server says so."""
    pages: int = 1
    """How many pages the server was asked for; more than one tells that it does not ignore limits."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


async def read_list(
    body: ByteStream, wire_format: WireFormat[T], where: str, on_undecodable: UndecodableHandler | None = None
) -> ObjectList[T]:
    """Make the objects of one page while it arrives, in slices of about a millisecond between two checkpoints.

    Raises:
        UnexpectedResponseError: The body is not a list of this kind, or an object does not decode and there is no
            handler for it.
        ConnectionFailedError: It broke off.
    """
    splitter = ListSplitter()
    slices = Slices()
    objects: list[T] = []
    first: bytes | None = None

    async def make(items: list[bytes]) -> None:
        nonlocal first
        for item in items:
            try:
                objects.append(wire_format.make_item(item))
                first = first or item
            except DecodeError as exc:
                if on_undecodable is None:
                    raise
                error = DecodeError(f"{where}: {exc}")
                error.__cause__ = exc
                on_undecodable(undecodable_item(wire_format.name, item, error))
            if slices.is_over():
                await slices.checkpoint()

    try:
        while chunk := await body.receive_some():
            view = memoryview(chunk)  # of a transport in the same process a chunk may be the whole body
            for begin in range(0, len(chunk), BLOCK):
                await make(splitter.feed(view[begin : begin + BLOCK]))
        rest, head = splitter.finish()
        await make(rest)
        wire_format.check_list(head, first)
    except DecodeError as exc:
        raise UnexpectedResponseError(f"{where}: {exc}; {HINT}", code=body.code) from exc
    return ObjectList(
        items=tuple(objects),
        resource_version=head.resource_version,
        continue_token=head.continue_token,
        remaining_item_count=head.remaining_item_count,
    )

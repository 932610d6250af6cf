"""Lists of objects, and decoding a page of a list while it arrives."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, Protocol, SupportsIndex, TypeVar, final, overload

import attrs

from ..._util import Slices
from ...errors import DecodeError, ExpiredError, UnexpectedResponseError
from ...models import KubernetesObject
from ...transport._internal import ByteStream, request_id_in
from .._options import ListOptions
from ._list_splitter import BLOCK, ListSplitter
from ._protobuf import MessageListSplitter
from ._responses import raise_failure
from ._undecodable import Undecodable, UndecodableHandler, undecodable_item
from ._wire_format import WireFormat

T = TypeVar("T", bound=KubernetesObject)

_LARGE: Final = 1024 * 1024
"""The size in bytes above which an item is scanned in a separate slice."""

PAGE_SIZE: Final = 500
"""The default maximum number of objects on a page (client-go ``tools/pager``)."""


@final
@attrs.frozen(kw_only=True)
class ObjectList(Sequence[T], Generic[T]):
    """A sequence of the objects in a list, all at the same resourceVersion.

    Slices of the sequence are tuples.
    """

    items: tuple[T, ...] = attrs.field(repr=lambda items: f"<{len(items)} objects>")
    """The objects, in the server's order."""
    resource_version: str
    """The resourceVersion of the list. A watch from this version receives all later events."""
    continue_token: str = ""
    """The continue token for the next page; empty on the last page."""
    remaining_item_count: int | None = None
    """The number of objects on further pages, or None if the server does not report it."""
    pages: int = 1
    """The number of requested pages. If it is more than one, the server respects limits."""
    shard_selector: str = ""
    """The ``shardSelector`` that the server has applied; empty if it has none, or does not support it."""

    @overload
    def __getitem__(self, index: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...

    def __getitem__(self, index: SupportsIndex | slice) -> T | tuple[T, ...]:
        return self.items[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


async def read_list(
    body: ByteStream,
    wire_format: WireFormat[T],
    where: str,
    on_undecodable: UndecodableHandler | None = None,
    keep: Callable[[T], T | None] | None = None,
) -> ObjectList[T]:
    """Decode one page of a list while it arrives, with a checkpoint about once per millisecond.

    If ``keep`` is not None, the list contains what it returns for each object, without None.

    Raises:
        StatusError: The body is the Status of a failure.
        UnexpectedResponseError: The body is not a list of this kind, or an object cannot be decoded and
            ``on_undecodable`` is None.
        ConnectionFailedError: The body ended early.
    """
    decoder = wire_format.decoder_of(body.headers)
    splitter: ListSplitter | MessageListSplitter = ListSplitter() if decoder is None else MessageListSplitter()
    make_item = wire_format.make_item if decoder is None else decoder.make_item
    slices = Slices(4)
    objects: list[T] = []
    first: bytes | None = None
    request_id = request_id_in(body.headers)

    async def make(items: list[bytes]) -> None:
        nonlocal first
        for item in items:
            if len(item) > _LARGE:
                await slices.checkpoint()  # the scan of one item is most of the delay for other tasks
            try:
                obj = make_item(item)
                first = first or item
                kept = obj if keep is None else keep(obj)
                if kept is not None:
                    objects.append(kept)
            except DecodeError as exc:
                error = DecodeError(f"{where}: {exc}")  # without a cause: thousands of them may be kept
                found = await undecodable_item(wire_format.name, item, error, slices, is_message=decoder is not None)
                if on_undecodable is None:
                    what = found.key or "without a key"
                    hint = "correct it, or pass on_undecodable to receive the others"
                    text = f"{where}: an object, {what}: {exc}; {hint}"
                    raise UnexpectedResponseError(text, code=body.code, request_id=request_id) from exc
                on_undecodable(found)
            if slices.is_over():
                await slices.checkpoint()

    async def make_rest() -> None:
        while splitter.is_behind:
            await slices.checkpoint()
            await make(splitter.feed(b""))

    try:
        while chunk := await body.receive_some():
            view = memoryview(chunk)  # from a transport in the same process, a chunk may be the complete body
            for begin in range(0, len(chunk), BLOCK):
                await make(splitter.feed(view[begin : begin + BLOCK]))
                if splitter.is_behind:
                    await make_rest()
                if slices.is_over():
                    await slices.checkpoint()
        while (end := splitter.finish()) is None:
            await make_rest()
        rest, head = end
        await make(rest)
        wire_format.check_list(head, first if decoder is None else None)  # a message has no kind
    except DecodeError as exc:
        raise_failure(body, splitter.begin, where=where)
        text = f"{where}: {exc}; check that {body.server} is an API server"
        raise UnexpectedResponseError(text, code=body.code, request_id=request_id) from exc
    return ObjectList(
        items=tuple(objects),
        resource_version=head.resource_version,
        continue_token=head.continue_token,
        remaining_item_count=head.remaining_item_count,
        shard_selector=head.shard_selector,
    )


class _ListPage(Protocol[T]):
    async def __call__(
        self, options: ListOptions | None = None, *, on_undecodable: UndecodableHandler | None = None
    ) -> ObjectList[T]: ...


async def all_pages(
    list_page: _ListPage[T],
    options: ListOptions,
    where: str,
    undecodable: deque[Undecodable] | None,
) -> ObjectList[T]:
    """Request all pages of a list at one resourceVersion.

    If the resourceVersion expires between two pages, the objects are listed again in a single page.
    """
    on_undecodable = None if undecodable is None else undecodable.append
    page = first = await list_page(options, on_undecodable=on_undecodable)
    items = list(first.items)
    pages = 1
    while page.continue_token:
        token = page.continue_token
        pages += 1
        try:
            page = await list_page(_following(options, token), on_undecodable=on_undecodable)
        except ExpiredError:
            if undecodable is not None:
                undecodable.clear()  # the pages received so far are dropped
            whole = await list_page(attrs.evolve(options, limit=None), on_undecodable=on_undecodable)
            return attrs.evolve(whole, pages=pages)
        if page.continue_token == token:
            raise UnexpectedResponseError(f"{where}: two pages have the same continue token", code=200)
        items += page.items
    version, shard_selector = first.resource_version, first.shard_selector
    return ObjectList(items=tuple(items), resource_version=version, pages=pages, shard_selector=shard_selector)


@final
@attrs.define(eq=False)
class Pages(Generic[T]):
    """The pages of a list. Each page is requested when the loop reaches it.

    The pages are not an async generator, because trio warns if a loop leaves an async generator early.
    """

    _list_page: _ListPage[T]
    _options: ListOptions
    _is_last: bool = attrs.field(default=False, init=False)

    def __aiter__(self) -> Pages[T]:
        return self

    async def __anext__(self) -> ObjectList[T]:
        if self._is_last:
            raise StopAsyncIteration
        page = await self._list_page(self._options)
        if page.continue_token:
            self._options = _following(self._options, page.continue_token)
        else:
            self._is_last = True
        return page


def _following(options: ListOptions, token: str) -> ListOptions:
    # The token implies the version; the server rejects a request with both.
    return attrs.evolve(options, continue_token=token, resource_version=None, resource_version_match=None)

"""Lists: the content of a page, and how a page is decoded while it arrives."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, Generic, Protocol, SupportsIndex, TypeVar, final, overload

import attrs

from .._util import Slices
from ..errors import DecodeError, ExpiredError, LimitExceededError, UnexpectedResponseError
from ..models import KubernetesObject
from ..transport import Limits
from ..transport._internal import BLOCK, ByteStream, LargeItem, ListSplitter, limit_exceeded, request_id_in
from ._options import ListOptions
from ._responses import check_server, raise_failure
from ._undecodable import Undecodable, UndecodableHandler, is_grammatical, too_large, too_large_item, undecodable_item
from ._wire_format import WireFormat

T = TypeVar("T", bound=KubernetesObject)

_LARGE: Final = 1024 * 1024
"""Bytes of an item that is scanned in a slice of its own."""

_NO_KEY: Final = "without a key that can be found"

PAGE_SIZE: Final = 500
"""The default limit of a page, in objects (client-go ``tools/pager``)."""


@final
@attrs.frozen(kw_only=True)
class ObjectList(Sequence[T], Generic[T]):
    """The objects of a list, at one resourceVersion: a sequence of them; slices are tuples."""

    items: tuple[T, ...] = attrs.field(repr=lambda items: f"<{len(items)} objects>")
    """The objects, in the server's order."""
    resource_version: str
    """The version of the collection; a watch from this version receives all later events."""
    continue_token: str = ""
    """The token for the next page; empty on the last page."""
    remaining_item_count: int | None = None
    """The number of objects on further pages, if the server reports it."""
    pages: int = 1
    """The number of pages that were requested; with more than one, the server does not ignore limits."""

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
    limits: Limits,
    on_undecodable: UndecodableHandler | None = None,
) -> ObjectList[T]:
    """Decode one page while it arrives, with a checkpoint about every millisecond.

    Raises:
        StatusError: The body is the Status of a failure.
        UnexpectedResponseError: The body is not a list of this kind, or an object cannot be decoded and there is no
            handler for it.
        LimitExceededError: The list is too long, or arrives too slowly; or an object is too large, and there is no
            handler for it.
        ConnectionFailedError: The body ended early.
    """
    splitter = ListSplitter(max_item=limits.item_bytes)
    slices = Slices()
    objects: list[T] = []
    first: bytes | None = None
    undecodable = 0
    request_id = request_id_in(body.headers)

    def report(found: Undecodable) -> None:
        nonlocal undecodable
        undecodable += 1
        if undecodable > limits.undecodable_items:
            raise limit_exceeded(where, limits, "undecodable_items", "too many objects of the list cannot be decoded")
        assert on_undecodable is not None
        on_undecodable(found)

    async def make(items: list[bytes]) -> None:
        nonlocal first
        for item in items:
            if len(item) > _LARGE:
                await slices.checkpoint()  # the scan of one is most of what other tasks may have to wait
            try:
                objects.append(wire_format.make_item(item))
                first = first or item
            except DecodeError as exc:
                error = DecodeError(f"{where}: {exc}")  # without a cause: thousands of them may be kept
                if not await is_grammatical(item, slices):
                    # Where it ends is not known, nor whether others are in it; a cache would delete those.
                    raise DecodeError("an object of the list is not JSON") from exc
                found = await undecodable_item(wire_format.name, item, error, slices)
                if on_undecodable is None:
                    what = found.key or _NO_KEY
                    hint = "correct it, or pass on_undecodable to receive the others"
                    text = f"{where}: an object, {what}: {exc}; {hint}"
                    raise UnexpectedResponseError(text, code=body.code, request_id=request_id) from exc
                report(found)
            if slices.is_over():
                await slices.checkpoint()
        while splitter.large:
            await report_large(splitter.large.pop(0))

    async def report_large(large: LargeItem) -> None:
        what = f"an object of the list is too large ({large.size} bytes)"
        exceeded = limit_exceeded(where, limits, "item_bytes", what)
        found = await too_large_item(wire_format.name, large.beginning, too_large(exceeded), slices)
        if on_undecodable is None:
            what = f"an object, {found.key or _NO_KEY}, is too large ({large.size} bytes)"
            exceeded = limit_exceeded(where, limits, "item_bytes", what)
            raise LimitExceededError(f"{exceeded}, or pass on_undecodable to receive the others", limit="item_bytes")
        report(found)

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
        splitter.end()
        await make_rest()
        rest, head = splitter.finish()
        await make(rest)
        wire_format.check_list(head, first)
    except DecodeError as exc:
        raise_failure(body, splitter.begin, where=where)
        text = f"{where}: {exc}; {check_server(body.server)}"
        raise UnexpectedResponseError(text, code=body.code, request_id=request_id) from exc
    return ObjectList(
        items=tuple(objects),
        resource_version=head.resource_version,
        continue_token=head.continue_token,
        remaining_item_count=head.remaining_item_count,
    )


class _ListPage(Protocol[T]):
    async def __call__(
        self, options: ListOptions | None = None, *, on_undecodable: UndecodableHandler | None = None
    ) -> ObjectList[T]: ...


async def all_pages(
    list_page: _ListPage[T],
    options: ListOptions,
    where: str,
    limits: Limits,
    undecodable: deque[Undecodable] | None,
) -> ObjectList[T]:
    """List all pages, at one resourceVersion; without pages if that version expires between two of them.

    Raises:
        UnexpectedResponseError: The continue token of two pages is equal.
        LimitExceededError: There are too many pages, or undecodable objects.
    """
    on_undecodable = None if undecodable is None else undecodable.append
    page = first = await list_page(options, on_undecodable=on_undecodable)
    items = list(first.items)
    pages = 1
    while page.continue_token:
        token = page.continue_token
        # The token implies the version; the server rejects a request with both.
        following = attrs.evolve(options, continue_token=token, resource_version=None, resource_version_match=None)
        pages += 1
        if undecodable is not None and len(undecodable) > limits.undecodable_items:
            raise limit_exceeded(where, limits, "undecodable_items", "too many objects of the list cannot be decoded")
        if pages > limits.list_pages:
            raise limit_exceeded(where, limits, "list_pages", "the list has too many pages")
        try:
            page = await list_page(following, on_undecodable=on_undecodable)
        except ExpiredError:
            if undecodable is not None:
                undecodable.clear()  # the pages so far are dropped
            whole = await list_page(attrs.evolve(options, limit=None), on_undecodable=on_undecodable)
            return attrs.evolve(whole, pages=pages)
        if page.continue_token == token:
            raise UnexpectedResponseError(f"{where}: the continue token of two pages is equal", code=200)
        items += page.items
    return ObjectList(items=tuple(items), resource_version=first.resource_version, pages=pages)

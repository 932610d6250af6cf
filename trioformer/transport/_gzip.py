"""Decompresses a body that was requested with gzip, in slices.

httpx decompresses what has arrived in one piece, and 30 KB of gzip may be 30 MB.
Here each call returns at most 64 KiB, as much as one read of a socket, so that other tasks run in between, and the
limits of a body count the bytes that come out.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Mapping
from typing import Final, final

import httpx
import trio

SLICE: Final = 64 * 1024
"""Bytes of a slice; to decompress them takes a quarter of a millisecond."""
_INPUT: Final = 16 * 1024
"""Bytes that zlib is given at once; it copies those that it has not used."""
_GZIP: Final = 16 + zlib.MAX_WBITS
_MOST_WITHOUT_OUTPUT: Final = 1024 * 1024
"""Bytes that may arrive without a byte of the body: names in headers, empty members and blocks may go on for ever."""


def is_gzip(headers: Mapping[str, str]) -> bool:
    """Whether a body is compressed with gzip, once, and with nothing else."""
    return headers.get("content-encoding", "").strip().lower() in ("gzip", "x-gzip")


@final
class GunzipChunks(AsyncIterator[bytes]):
    """The slices of a body whose chunks are compressed; a body may have several members, or be empty.

    Raises:
        httpx.DecodingError: It is not gzip, or ends early.  Unlike after other errors, the source can be read further.
    """

    __slots__ = ("_decoder", "_is_between_members", "_received", "_source", "_used", "_without_output")

    def __init__(self, source: AsyncIterator[bytes]) -> None:
        self._source = source
        self._received = b""
        self._used = 0
        self._without_output = 0
        self._decoder = zlib.decompressobj(_GZIP)
        self._is_between_members = True

    async def __anext__(self) -> bytes:
        while True:
            try:
                data = self._decompress()
            except zlib.error:
                data = None
            if data is None:  # outside of the handler, whose exception would be the context
                raise httpx.DecodingError("it is not gzip")
            if data:
                self._without_output = 0
                return data
            if self._without_output > _MOST_WITHOUT_OUTPUT:
                raise httpx.DecodingError("it has a mebibyte that is empty")
            if self._used < len(self._received):
                # Names in headers, empty members, empty blocks.  A cancellation waits for the next chunk: here it would
                # leave the generators below suspended.
                await trio.lowlevel.cancel_shielded_checkpoint()
                continue
            try:
                self._received, self._used = await self._source.__anext__(), 0
            except StopAsyncIteration:
                if self._is_between_members:
                    raise
                raise httpx.DecodingError("it ends early") from None

    def _decompress(self) -> bytes:
        """Return the next slice; empty if the input so far has no more."""
        decoder = self._decoder
        if decoder.unconsumed_tail:
            return self._output(decoder.unconsumed_tail)
        given = self._received[self._used : self._used + _INPUT]
        self._used += len(given)
        self._without_output += len(given)
        return self._output(given) if given or not self._is_between_members else b""

    def _output(self, given: bytes) -> bytes:
        decoder = self._decoder
        self._is_between_members = self._is_between_members and not given
        data = decoder.decompress(given, SLICE)
        if decoder.eof:
            self._used -= len(decoder.unused_data)
            self._without_output -= len(decoder.unused_data)
            self._decoder = zlib.decompressobj(_GZIP)
            self._is_between_members = True
        return data

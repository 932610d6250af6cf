"""Read an untrusted tar archive while it arrives, and write its files.

:mod:`tarfile` parses the headers of GNU, busybox and POSIX archives, including long names and sparse files.
The extraction of :mod:`tarfile` is not used, because it follows links in paths.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from itertools import chain
from typing import Any, Final, TypeVar, final

from ..._text import quoted
from ._results import CopyProblem, Counter, is_inside, local_problem
from ._tree import LocalTree, Parts

T = TypeVar("T")

_MAX_HEADER: Final = 1024 * 1024
"""The maximum size of one file's headers in bytes, including names, attributes and the map of a sparse file."""
_MAX_HEADERS: Final = 16
"""The maximum number of headers for one file.  tarfile makes a recursive call for each header, and after a
``RecursionError`` inside ``trio.from_thread.run()``, this call would never return."""
_MAX_NAME: Final = 16 * 1024
"""The maximum length of a path, because the paths of skipped files are kept in memory."""
_MAX_POSITION: Final = 2**63 - 1
"""The maximum position in a file."""
_MAX_GLOBAL: Final = 1_000
"""The maximum number of global attributes."""
_PIECE: Final = 256 * 1024
_KINDS: Final = {
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a FIFO",
}


@final
class RemoteLink(Exception):  # noqa: N818  # not an error
    """An exception that reports that the source is a symbolic link."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.target = target


@final
class DamagedArchive(CopyProblem):
    """An exception that reports that the archive cannot be read, perhaps because tar failed."""


@final
class ArchiveStream:
    """A file object with the bytes of an archive, which can be read only once and only forward."""

    def __init__(self, receive: Callable[[], bytes]) -> None:
        self._receive = receive
        self._rest = memoryview(b"")
        self._position = 0
        self._header_size = self._headers = 0
        self.last = b""
        """The last bytes that were read."""
        self.has_failed = False
        """Whether receiving has failed."""

    def begin_header(self) -> None:
        """Reset the limits for the headers of the next file."""
        self._header_size = self._headers = 0

    def count_header(self) -> None:
        """Count one header of the current file."""
        self._headers += 1
        if self._headers > _MAX_HEADERS:
            raise tarfile.ReadError(f"a file has more than {_MAX_HEADERS} headers")

    def tell(self) -> int:
        """Return the number of bytes read so far."""
        return self._position

    def seek(self, position: int) -> None:
        """Skip forward to a position."""
        if position < self._position:
            raise tarfile.ReadError("a size is negative")
        while self._position < position and self._fill():
            self._take(position - self._position)

    def read(self, size: int) -> bytes:
        """Read ``size`` bytes of a header, or fewer at the end of the archive."""
        self._header_size += size
        if size < 0 or self._header_size > _MAX_HEADER:
            raise tarfile.ReadError(f"the headers of a file have more than {_MAX_HEADER} bytes")
        pieces = bytearray()
        while len(pieces) < size and self._fill():
            pieces += self._take(size - len(pieces))
        self.last = bytes(pieces)
        return self.last

    def read_data(self, size: int) -> memoryview:
        """Read up to ``size`` bytes of a file; return an empty result at the end of the archive."""
        return self._take(size) if self._fill() else self._rest

    def _fill(self) -> bool:
        if not self._rest:
            self.has_failed = True  # reset below
            self._rest = memoryview(self._receive())
            self.has_failed = False
        return bool(self._rest)

    def _take(self, size: int) -> memoryview:
        piece = self._rest[:size]
        self._rest = self._rest[size:]
        self._position += len(piece)
        return piece


@final
class Unpacker:
    """A writer for the files in an archive, to be used in a thread.

    Args:
        receive: A function that returns the next bytes of the archive, or empty bytes at its end.
        root: The requested name, which every path in the archive must start with.  ``"."`` means that there is no such
            name.
        target: The local path to write to.
        counter: The counter of copied and skipped files.
    """

    def __init__(self, receive: Callable[[], bytes], root: str, target: str, counter: Counter) -> None:
        self._stream = ArchiveStream(receive)
        self._root = root
        self._target = os.path.realpath(target)
        self._counter = counter
        self._tree: LocalTree | None = None
        self._new_mode: int | None = None
        """The permissions of the target directory, if it was created."""
        self._is_file = False

    def run(self) -> None:
        """Read the archive to its end.

        Raises:
            RemoteLink: The source in the container is a symbolic link.
            DamagedArchive: The archive is invalid or incomplete. All data has been received.
            CopyProblem: The archive contains paths that were not requested, or a file cannot be written.
        """
        try:
            archive = self._parsed(self._open)
            while (member := self._parsed(archive.next)) is not None:
                archive.members.clear()  # tarfile would keep them
                self._take(member, len(archive.pax_headers))
                self._stream.begin_header()
        except tarfile.ReadError as exc:
            self._drain()
            raise DamagedArchive(f"the archive is damaged: {exc}") from exc
        is_complete = self._stream.last == bytes(tarfile.BLOCKSIZE)
        self._drain()
        if not is_complete:
            raise DamagedArchive("the archive is damaged: its end is missing")
        if self._tree is None:
            raise DamagedArchive("the archive is empty")
        self._tree.finish()
        if self._new_mode is not None:
            self._tree.set_mode(self._new_mode)

    def close(self) -> None:
        """Close the target directory."""
        if self._tree is not None:
            self._tree.close()

    def _open(self) -> Any:
        """Open the archive and return the TarFile, whose type is Any because typeshed lacks some members."""
        stream = self._stream

        class Member(tarfile.TarInfo):
            def __init__(self, name: str = "") -> None:
                stream.count_header()
                super().__init__(name)

        return tarfile.open(
            fileobj=self._stream,  # type: ignore[call-overload]  # tarfile needs only these methods
            mode="r:",
            tarinfo=Member,
            encoding="utf-8",
            errors="surrogateescape",
        )

    def _parsed(self, parse: Callable[[], T]) -> T:
        """Call a function that parses a header; its exceptions are converted to :class:`tarfile.ReadError`."""
        try:
            return parse()
        except Exception as exc:
            if self._stream.has_failed or isinstance(exc, tarfile.ReadError):
                raise
            raise tarfile.ReadError(f"a header is invalid: {type(exc).__name__}") from exc

    def _drain(self) -> None:
        while self._stream.read_data(_PIECE):
            pass

    # --- members ---

    def _take(self, member: tarfile.TarInfo, attributes: int) -> None:
        if len(member.name) > _MAX_NAME or attributes > _MAX_GLOBAL:
            raise tarfile.ReadError("the archive has a path that is too long, or too many attributes")
        parts = self._parts(member.name)
        if not parts and self._tree is None:
            if self._begin(member):
                return
            parts = (os.path.basename(self._target),)
        elif self._is_file or not parts:
            if not parts and member.isdir():
                return
            raise self._refused(member.name)
        if self._tree is None:
            # Some tars omit the directory.
            self._open_directory(0o755)
        tree = self._tree
        assert tree is not None
        counter = self._counter
        counter.path = self._root if self._is_file else "/".join(parts)
        if member.isreg():
            tree.write_file(parts, member.mode, lambda descriptor: self._copy(member, descriptor))
            counter.files += 1
        elif member.isdir():
            tree.make_directory(parts, member.mode)
            counter.directories += 1
        elif member.issym():
            if is_inside(parts, member.linkname):
                tree.make_symlink(parts, member.linkname)
                counter.links += 1
            else:
                counter.skip(counter.path, f"a link to {quoted(member.linkname)}, outside of the directory")
        elif member.islnk():
            existing = self._parts(member.linkname)
            if not existing:
                raise self._refused(member.linkname)
            tree.make_hard_link(parts, existing)
            counter.files += 1
        else:
            counter.skip(counter.path, _KINDS.get(member.type, f"a file of the unknown type {member.type!r}"))

    def _begin(self, member: tarfile.TarInfo) -> bool:
        """Handle the first member, which is the requested file or directory; return whether it is complete."""
        if member.isdir():
            self._open_directory(member.mode)
            return True
        if member.issym():
            raise RemoteLink(member.linkname)
        if not member.isreg():
            raise CopyProblem(f"the source is {_KINDS.get(member.type, 'not a regular file')}")
        if os.path.isdir(self._target):
            inside = quoted(os.path.join(self._target, self._root))
            hint = f"to copy the file into it, pass {inside} as the target"
            raise CopyProblem(f"{quoted(self._target)} is a directory; {hint}")
        self._is_file = True
        self._tree = LocalTree(os.path.dirname(self._target))
        return False

    def _open_directory(self, mode: int) -> None:
        try:
            os.mkdir(self._target, 0o700)
            self._new_mode = mode
        except FileExistsError:
            pass  # LocalTree() checks that it is a directory
        except OSError as exc:
            raise local_problem(exc) from exc
        self._tree = LocalTree(self._target)

    def _parts(self, name: str) -> Parts:
        parts = tuple(part for part in name.split("/") if part not in ("", "."))
        if name.startswith("/") or ".." in parts or "\0" in name:
            raise self._refused(name)
        if self._root == ".":
            return parts
        if not parts or parts[0] != self._root:
            raise self._refused(name)
        return parts[1:]

    def _refused(self, name: str) -> CopyProblem:
        return CopyProblem(f"the archive contains {quoted(name)}, which was not requested")

    def _copy(self, member: tarfile.TarInfo, descriptor: int) -> None:
        """Write the data of a file to a descriptor."""
        stream = self._stream
        stream.seek(member.offset_data)
        sparse: list[tuple[int, int]] | None = getattr(member, "sparse", None)
        if sparse is not None and not all(0 <= each <= _MAX_POSITION for each in (member.size, *chain(*sparse))):
            raise tarfile.ReadError("a sparse file has invalid sizes")
        for offset, size in sparse if sparse is not None else [(0, member.size)]:
            if sparse is not None:
                os.lseek(descriptor, offset, os.SEEK_SET)
            left = size
            while left > 0:
                piece = stream.read_data(min(left, _PIECE))
                if not piece:
                    raise tarfile.ReadError(f"it ends in the middle of {quoted(member.name)}")
                left -= len(piece)
                self._counter.bytes += len(piece)
                while piece:
                    piece = piece[os.write(descriptor, piece) :]
        if sparse is not None:
            os.ftruncate(descriptor, member.size)

"""Reads a tar archive as it arrives, and writes its files; whoever has made the archive is not trusted.

:mod:`tarfile` parses the headers: those of GNU tar, of busybox and of POSIX, with long names and sparse files.
Its own extraction needs a path for each file, and looks it up through links.
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
"""Bytes of what describes one file: names, attributes, the map of a sparse file."""
_MAX_HEADERS: Final = 16
"""Headers that one file may have.  tarfile calls itself for each, and must not meet Python's limit of recursion inside
of a call into trio's thread, which would never end."""
_MAX_NAME: Final = 16 * 1024
"""Characters of a path; some of them are kept, for what is skipped."""
_MAX_POSITION: Final = 2**63 - 1
"""The last position in a file that the system can be asked for."""
_MAX_GLOBAL: Final = 1_000
"""Attributes that hold for all files."""
_PIECE: Final = 256 * 1024
_KINDS: Final = {
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a FIFO",
}


@final
class RemoteLink(Exception):  # noqa: N818  # not an error
    """What was to be copied is itself a symbolic link."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.target = target


@final
class DamagedArchive(CopyProblem):
    """The archive cannot be read; it may be none because tar has failed."""


@final
class ArchiveStream:
    """The bytes of an archive, as a file that is read once; it can be moved forward only."""

    def __init__(self, receive: Callable[[], bytes]) -> None:
        self._receive = receive
        self._rest = memoryview(b"")
        self._position = 0
        self._header_size = self._headers = 0
        self.last = b""
        """What was read last."""
        self.has_failed = False
        """Whether no more can be received."""

    def begin_header(self) -> None:
        """The header of the next file follows."""
        self._header_size = self._headers = 0

    def count_header(self) -> None:
        """Count a header of the next file."""
        self._headers += 1
        if self._headers > _MAX_HEADERS:
            raise tarfile.ReadError(f"more than {_MAX_HEADERS} headers of one file")

    def tell(self) -> int:
        """Return the number of bytes that were read."""
        return self._position

    def seek(self, position: int) -> None:
        """Skip what is before a position."""
        if position < self._position:
            raise tarfile.ReadError("a size that is negative")
        while self._position < position and self._fill():
            self._take(position - self._position)

    def read(self, size: int) -> bytes:
        """Read a part of a header; less at the end of the archive."""
        self._header_size += size
        if size < 0 or self._header_size > _MAX_HEADER:
            raise tarfile.ReadError(f"a header of more than {_MAX_HEADER} bytes")
        pieces = bytearray()
        while len(pieces) < size and self._fill():
            pieces += self._take(size - len(pieces))
        self.last = bytes(pieces)
        return self.last

    def read_data(self, size: int) -> memoryview:
        """Read some of the data of a file, at most ``size`` bytes; none at the end of the archive."""
        return self._take(size) if self._fill() else self._rest

    def _fill(self) -> bool:
        if not self._rest:
            self.has_failed = True  # until something was received
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
    """Writes the files of an archive; use it in a thread.

    Args:
        receive: Returns the next bytes of the archive; none at its end.
        root: What was requested, the first part of each path in the archive; ``"."`` for none.
        target: Where it is written to.
        counter: Counts what is copied.
    """

    def __init__(self, receive: Callable[[], bytes], root: str, target: str, counter: Counter) -> None:
        self._stream = ArchiveStream(receive)
        self._root = root
        self._target = os.path.realpath(target)
        self._counter = counter
        self._tree: LocalTree | None = None
        self._new_mode: int | None = None
        """The permissions of the directory that was requested, if it was created here."""
        self._is_file = False

    def run(self) -> None:
        """Read the archive to its end.

        Raises:
            RemoteLink: What was requested is a symbolic link.
            DamagedArchive: It is not an archive, or is incomplete; everything was received.
            CopyProblem: The archive has paths that were not requested, or a file cannot be written.
        """
        try:
            archive = self._parsed(self._open)
            while (member := self._parsed(archive.next)) is not None:
                archive.members.clear()  # they would be kept for ever
                self._take(member, len(archive.pax_headers))
                self._stream.begin_header()
        except tarfile.ReadError as exc:
            self._drain()
            raise DamagedArchive(f"the archive is damaged: {exc}") from exc
        is_complete = self._stream.last == bytes(tarfile.BLOCKSIZE)
        self._drain()
        if not is_complete:
            raise DamagedArchive("the archive is damaged: it has no end")
        if self._tree is None:
            raise DamagedArchive("the archive is empty")
        self._tree.finish()
        if self._new_mode is not None:
            self._tree.set_mode(self._new_mode)

    def close(self) -> None:
        """Close it."""
        if self._tree is not None:
            self._tree.close()

    def _open(self) -> Any:
        """Return the TarFile, which has read the first header; typeshed does not know all of it."""
        stream = self._stream

        class Member(tarfile.TarInfo):
            def __init__(self, name: str = "") -> None:
                stream.count_header()
                super().__init__(name)

        return tarfile.open(
            fileobj=self._stream,  # type: ignore[call-overload]  # it needs nothing but these methods
            mode="r:",
            tarinfo=Member,
            encoding="utf-8",
            errors="surrogateescape",
        )

    def _parsed(self, parse: Callable[[], T]) -> T:
        """Parse a header.  Those of a hostile archive make tarfile raise whatever Python has, such as ValueError."""
        try:
            return parse()
        except Exception as exc:
            if self._stream.has_failed or isinstance(exc, tarfile.ReadError):
                raise
            raise tarfile.ReadError(f"a header that is not valid: {type(exc).__name__}") from exc

    def _drain(self) -> None:
        while self._stream.read_data(_PIECE):
            pass

    # --- members ---

    def _take(self, member: tarfile.TarInfo, attributes: int) -> None:
        if len(member.name) > _MAX_NAME or attributes > _MAX_GLOBAL:
            raise tarfile.ReadError("a path that is too long, or too many attributes")
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
            # Some tars leave the directory out.
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
                counter.skip(counter.path, f"a link that may lead out of the directory, to {quoted(member.linkname)}")
        elif member.islnk():
            existing = self._parts(member.linkname)
            if not existing:
                raise self._refused(member.linkname)
            tree.make_hard_link(parts, existing)
            counter.files += 1
        else:
            counter.skip(counter.path, _KINDS.get(member.type, f"a file of the unknown type {member.type!r}"))

    def _begin(self, member: tarfile.TarInfo) -> bool:
        """Take what was requested itself; whether nothing is left to do for it."""
        if member.isdir():
            self._open_directory(member.mode)
            return True
        if member.issym():
            raise RemoteLink(member.linkname)
        if not member.isreg():
            raise CopyProblem(f"it is {_KINDS.get(member.type, 'no regular file')}")
        if os.path.isdir(self._target):
            inside = quoted(os.path.join(self._target, self._root))
            raise CopyProblem(f"{quoted(self._target)} is a directory; to copy the file into it, name {inside}")
        self._is_file = True
        self._tree = LocalTree(os.path.dirname(self._target))
        return False

    def _open_directory(self, mode: int) -> None:
        try:
            os.mkdir(self._target, 0o700)
            self._new_mode = mode
        except FileExistsError:
            pass  # or it is not a directory, which is raised below
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
        return CopyProblem(f"the archive has {quoted(name)}, which is not a part of what was requested")

    def _copy(self, member: tarfile.TarInfo, descriptor: int) -> None:
        """Write the data of a file."""
        stream = self._stream
        stream.seek(member.offset_data)
        sparse: list[tuple[int, int]] | None = getattr(member, "sparse", None)
        if sparse is not None and not all(0 <= each <= _MAX_POSITION for each in (member.size, *chain(*sparse))):
            raise tarfile.ReadError("a sparse file of impossible sizes")
        for offset, size in sparse if sparse is not None else [(0, member.size)]:
            if sparse is not None:
                os.lseek(descriptor, offset, os.SEEK_SET)
            left = size
            while left > 0:
                piece = stream.read_data(min(left, _PIECE))
                if not piece:
                    raise tarfile.ReadError(f"it ends inside of {quoted(member.name)}")
                left -= len(piece)
                self._counter.bytes += len(piece)
                while piece:
                    piece = piece[os.write(descriptor, piece) :]
        if sparse is not None:
            os.ftruncate(descriptor, member.size)

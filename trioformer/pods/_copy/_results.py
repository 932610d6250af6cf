"""What has been copied, during a copy and after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, final

import attrs

from ..._suggestions import check_sync
from ..._text import quoted

MAX_SKIPPED: Final = 1_000
"""Skipped files that a result names."""


@final
@attrs.frozen
class CopyProgress:
    """How far a copy is."""

    path: str
    """The file that is being copied, relative to the directory that is; the name of the file, if it is only one."""
    files: int
    """How many files are complete."""
    bytes: int
    """How many bytes of files are copied."""
    total_bytes: int | None
    """How many bytes there are; None if that is not known, as for a directory."""


@final
@attrs.frozen
class SkippedFile:
    """A file that was not copied although the archive is right."""

    path: str
    """Its path, as in :class:`CopyProgress`."""
    reason: str
    """Why, such as "a FIFO"."""


@final
@attrs.frozen
class CopyResult:
    """What a copy has done."""

    files: int
    """How many files were copied."""
    directories: int
    """How many directories were copied, also those that existed; without the one that was asked for."""
    links: int
    """How many symbolic links were copied."""
    bytes: int
    """How many bytes the files have."""
    skipped: tuple[SkippedFile, ...]
    """What was not copied, the first 1,000: devices, FIFOs, sockets, and links that lead out of the directory."""
    skipped_count: int
    """How many were not copied."""


class CopyProblem(Exception):  # noqa: N818  # a CopyFailedError is made of it
    """Why files cannot be copied, without what was to be copied."""


def local_problem(error: OSError, path: str | None = None) -> CopyProblem:
    """Return why a local file cannot be read or written."""
    return CopyProblem(f"{quoted(path or str(error.filename))}: {error.strerror}")


OnProgress: TypeAlias = Callable[[CopyProgress], object]


def check_progress(given: object) -> None:
    """Check the function for the progress; it is called at once, also from what must not wait."""
    if given is not None:
        check_sync(given, "on_progress", "def on_progress(progress)")


@final
@attrs.define(eq=False)
class Counter:
    """Counts what is copied, in the thread that copies; it is read in trio's while that one waits."""

    total_bytes: int | None = None
    path: str = ""
    files: int = 0
    directories: int = 0
    links: int = 0
    bytes: int = 0
    skipped: list[SkippedFile] = attrs.field(factory=list)
    skipped_count: int = 0

    def skip(self, path: str, reason: str) -> None:
        """Count a file that is not copied."""
        self.skipped_count += 1
        if len(self.skipped) < MAX_SKIPPED:
            self.skipped.append(SkippedFile(path, reason))

    def progress(self) -> CopyProgress:
        """Return how far the copy is."""
        return CopyProgress(self.path, self.files, self.bytes, self.total_bytes)

    def result(self) -> CopyResult:
        """Return what the copy has done."""
        return CopyResult(self.files, self.directories, self.links, self.bytes, tuple(self.skipped), self.skipped_count)


def is_inside(parts: tuple[str, ...], target: str) -> bool:
    """Return whether a symbolic link leads to something inside of the directory that is copied.

    Args:
        parts: Where the link is, relative to that directory.
        target: Where it leads to.

    ``..`` is accepted at the beginning alone.  After a name it may belong to a link to somewhere else, so that ``a/..``
    need not be the directory that ``a`` is in.
    """
    if not target or target.startswith("/") or "\0" in target:
        return False
    depth = len(parts) - 1
    has_name = False
    for part in target.split("/"):
        if part == "..":
            if has_name or depth == 0:
                return False
            depth -= 1
        elif part not in ("", "."):
            has_name = True
    return True

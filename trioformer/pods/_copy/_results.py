"""Results and problems of copies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

import attrs

from ..._text import quoted

MAX_SKIPPED: Final = 1_000
"""The maximum number of skipped files in a result."""


@final
@attrs.frozen
class CopyResult:
    """The result of :func:`copy_to_pod` or :func:`copy_from_pod`."""

    files: int
    """The number of files that were copied."""
    directories: int
    """The number of directories that were copied, excluding the source directory itself."""
    links: int
    """The number of symbolic links that were copied."""
    bytes: int
    """The total size of the copied files."""
    skipped: Mapping[str, str]
    """The first 1,000 files that were not copied, each with the reason, such as "a FIFO"."""
    skipped_count: int
    """The total number of files that were not copied."""


class CopyProblem(Exception):  # noqa: N818  # it becomes a CopyFailedError
    """The reason why a file cannot be copied, without the source and target of the copy."""


def local_problem(error: OSError, path: str | None = None) -> CopyProblem:
    """Return the problem for an error while reading or writing a local file."""
    return CopyProblem(f"{quoted(path or str(error.filename))}: {error.strerror}")


@final
@attrs.define(eq=False)
class Counter:
    """A counter of copied and skipped files."""

    path: str = ""
    """The path of the current file."""
    files: int = 0
    directories: int = 0
    links: int = 0
    bytes: int = 0
    skipped: dict[str, str] = attrs.field(factory=dict)
    skipped_count: int = 0

    def skip(self, path: str, reason: str) -> None:
        """Count a skipped file."""
        self.skipped_count += 1
        if len(self.skipped) < MAX_SKIPPED:
            self.skipped[path] = reason

    def result(self) -> CopyResult:
        """Return the counts as a result."""
        return CopyResult(self.files, self.directories, self.links, self.bytes, self.skipped, self.skipped_count)


def is_inside(parts: tuple[str, ...], target: str) -> bool:
    """Return whether a symbolic link points to a path inside the copied directory.

    Args:
        parts: The path of the link, relative to the copied directory.
        target: The target of the link.

    ``..`` is accepted only at the start of the target.  After the name of another link, ``..`` would mean the parent
    of that link's target.
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

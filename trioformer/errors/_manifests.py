"""Errors in manifest files, and errors from applying manifests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from ._base import TrioformerError

__all__ = ["ManifestError", "ManifestFailure", "ManifestProblem", "ManifestsFailedError", "RolloutFailedError"]

_SHOWN: Final = 20


@attrs.frozen
class ManifestProblem:
    """One problem in a manifest. ``str()`` returns its position and message in one line."""

    message: str
    """The problem; it does not quote values, which may be secrets."""
    file: str | None = None
    """The file; None for a text, or for an object from a program."""
    line: int | None = None
    """The line, counted from 1; None if unknown."""
    column: int | None = None
    """The column, counted from 1; None if unknown."""

    @property
    def place(self) -> str:
        """The position as ``file:line:column``, or as ``line 3, column 5`` for text that is not from a file.

        If the position is unknown, the string is empty.
        """
        if self.file is None:
            return "" if self.line is None else f"line {self.line}, column {self.column}"
        return ":".join(f"{part}" for part in (self.file, self.line, self.column) if part is not None)

    def __str__(self) -> str:
        return ": ".join(part for part in (self.place, self.message) if part)


class ManifestError(TrioformerError, ValueError):
    """Manifests are not valid, for example because they are not YAML, lack a kind, or contain an object twice.

    Attributes:
        problems: All problems, each a :class:`ManifestProblem`. The text of the error contains only the first twenty
            problems.
    """

    def __init__(self, problems: Sequence[ManifestProblem]) -> None:
        self.problems: tuple[ManifestProblem, ...] = tuple(problems)
        super().__init__(_joined(self.problems))

    @property
    def file(self) -> str | None:
        """The file of the first problem."""
        return self.problems[0].file

    @property
    def line(self) -> int | None:
        """The line of the first problem, counted from 1."""
        return self.problems[0].line

    @property
    def column(self) -> int | None:
        """The column of the first problem, counted from 1."""
        return self.problems[0].column


@attrs.frozen
class ManifestFailure:
    """One manifest that was not applied, was not deleted or did not become ready."""

    manifest: str
    """The object and the place of its manifest, such as ``Deployment web in namespace default (web.yaml:12)``."""
    error: TrioformerError
    """The reason."""

    def __str__(self) -> str:
        return f"{self.manifest}: {self.error}"


class ManifestsFailedError(TrioformerError):
    """Some manifests were not applied, were not deleted or did not become ready. Other changes are not rolled back.

    Attributes:
        failures: The failed manifests and their errors, each a :class:`ManifestFailure`. The text of the error contains
            only the first twenty failures.
    """

    def __init__(self, summary: str, failures: Sequence[ManifestFailure]) -> None:
        self.failures: tuple[ManifestFailure, ...] = tuple(failures)
        super().__init__(f"{summary}: {_joined(self.failures)}")


class RolloutFailedError(TrioformerError):
    """An object, such as a failed Job, can no longer become ready. The text contains the reason."""


def _joined(entries: Sequence[object]) -> str:
    shown = "; ".join(str(entry) for entry in entries[:_SHOWN])
    return shown if len(entries) <= _SHOWN else f"{shown}; and {len(entries) - _SHOWN} more"

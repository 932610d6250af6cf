"""What goes wrong with manifests: in the files, and at the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from ._base import TrioformerError

__all__ = ["ManifestError", "ManifestFailure", "ManifestProblem", "ManifestsFailedError", "RolloutFailedError"]

_SHOWN: Final = 20


@attrs.frozen
class ManifestProblem:
    """One thing that is wrong with a manifest; ``str()`` is a line with file, line, column and message."""

    message: str
    """What is wrong; it quotes no values, which may be secrets."""
    file: str | None = None
    """The file; None for a text, or for an object that a program has made."""
    line: int | None = None
    """The line, from 1; None if the problem has no place."""
    column: int | None = None
    """The column, from 1; None if the problem has no place."""

    @property
    def place(self) -> str:
        """``file:line:column``, as compilers write it; ``line 3, column 5`` of a text; empty if nothing is known."""
        if self.file is None:
            return "" if self.line is None else f"line {self.line}, column {self.column}"
        return ":".join(f"{part}" for part in (self.file, self.line, self.column) if part is not None)

    def __str__(self) -> str:
        return ": ".join(part for part in (self.place, self.message) if part)


class ManifestError(TrioformerError, ValueError):
    """Manifests are not valid: not YAML, without a kind or name, or twice the same object.

    Attributes:
        problems: All problems that were found, each a :class:`ManifestProblem`; the text has the first twenty.
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
        """The line of the first problem, from 1."""
        return self.problems[0].line

    @property
    def column(self) -> int | None:
        """The column of the first problem, from 1."""
        return self.problems[0].column


@attrs.frozen
class ManifestFailure:
    """One manifest that was not applied, was not deleted or did not become ready."""

    manifest: str
    """The object and where its manifest is, such as ``Deployment web in namespace default (web.yaml:12)``."""
    error: TrioformerError
    """Why."""

    def __str__(self) -> str:
        return f"{self.manifest}: {self.error}"


class ManifestsFailedError(TrioformerError):
    """Some manifests were not applied, were not deleted or did not become ready; what was done stays done.

    Attributes:
        failures: The manifests and their errors, each a :class:`ManifestFailure`; the text has the first twenty.
    """

    def __init__(self, summary: str, failures: Sequence[ManifestFailure]) -> None:
        self.failures: tuple[ManifestFailure, ...] = tuple(failures)
        super().__init__(f"{summary}: {_joined(self.failures)}")


class RolloutFailedError(TrioformerError):
    """An object does not become ready by waiting, such as a failed Job; the text says why."""


def _joined(entries: Sequence[object]) -> str:
    shown = "; ".join(str(entry) for entry in entries[:_SHOWN])
    return shown if len(entries) <= _SHOWN else f"{shown}; and {len(entries) - _SHOWN} more"

"""An object, and the place in a file that it comes from."""

from __future__ import annotations

from typing import final

import attrs

from ..errors import ManifestProblem
from ..models import KubernetesObject


@final
@attrs.frozen(kw_only=True)
class Manifest:
    """An object that :func:`load_manifests` has loaded, and where it is."""

    object: KubernetesObject
    """The object, as it was written: defaults are not added."""
    file: str | None = None
    """The file; None for a text, and for an object that a program has made."""
    line: int | None = None
    """The line where it begins, from 1."""
    column: int | None = None
    """The column where it begins, from 1."""

    def problem(self, message: str) -> ManifestProblem:
        """Return a problem of this manifest, with its place."""
        return ManifestProblem(message, self.file, self.line, self.column)

    @property
    def place(self) -> str:
        """``file:line``, or only ``line 3`` for a text; empty for an object that a program has made."""
        if self.line is None:
            return ""
        return f"line {self.line}" if self.file is None else f"{self.file}:{self.line}"

    def __str__(self) -> str:
        obj = self.object
        namespace = f" in namespace {obj.namespace}" if obj.namespace else ""
        place = f" ({self.place})" if self.place else ""
        return f"{obj.kind} {obj.name or obj.metadata.generate_name}{namespace}{place}"

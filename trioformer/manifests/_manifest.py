"""An object, its place in a file, and the result of applying it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, final

import attrs

from .._suggestions import check_sync
from ..errors._internal import ManifestProblem
from ..models import KubernetesObject

ManifestAction: TypeAlias = Literal["created", "configured", "unchanged", "pruned", "deleted", "absent", "ready"]
"""The action on an object.

The first three are the words of ``kubectl apply``.  An object is ``unchanged`` if only its status or the owners of its
fields have changed.
``absent`` is an object that did not exist when it should be deleted.
"""


@final
@attrs.frozen(kw_only=True)
class Manifest:
    """An object that :func:`load_manifests` has loaded, and its place."""

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


@final
@attrs.frozen(kw_only=True)
class ManifestResult:
    """The result for one object; ``str()`` is a line such as ``Deployment web in namespace default created``."""

    manifest: Manifest
    """The manifest; of a pruned object, one without a place."""
    action: ManifestAction
    """The action."""
    object: KubernetesObject | None = None
    """The object as the server has stored it last; None if it is gone."""

    def __str__(self) -> str:
        obj = self.manifest.object if self.object is None else self.object
        return f"{Manifest(object=obj)} {self.action}"


ManifestProgress: TypeAlias = Callable[[ManifestResult], None]
"""Called with each result as soon as it is known; an exception of it ends the work."""


def check_progress(given: object, definition: str, *, arguments: int = 1) -> None:
    """Refuse an async function for the progress, because it would not be awaited."""
    if given is not None:
        check_sync(given, "on_progress", definition, arguments=arguments)

"""Manifests, which are objects with a location in a file, and the results of applying them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, final

import attrs

from .._suggestions import check_sync
from ..errors._internal import ManifestProblem
from ..models import KubernetesObject

ManifestAction: TypeAlias = Literal["created", "configured", "unchanged", "pruned", "deleted", "absent", "ready"]
"""The action that was taken on an object.

The first three actions have the same names in ``kubectl apply``.  An object is also ``unchanged`` if only its status
or the owners of its fields have changed.
``absent`` means that an object to delete did not exist.
"""


@final
@attrs.frozen(kw_only=True)
class Manifest:
    """An object that :func:`load_manifests` has loaded, with its location."""

    object: KubernetesObject
    """The object as it was written, without added defaults."""
    file: str | None = None
    """The file, or None if the object was loaded from a string or created by the program."""
    line: int | None = None
    """The line where the object begins, counted from 1."""
    column: int | None = None
    """The column where the object begins, counted from 1."""

    def problem(self, message: str) -> ManifestProblem:
        """Return a problem with the location of this manifest."""
        return ManifestProblem(message, self.file, self.line, self.column)

    @property
    def place(self) -> str:
        """The location as ``file:line``, or ``line 3`` if there is no file; empty if the location is not known."""
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
    """The result for one object, with a ``str()`` such as ``Deployment web in namespace default created``."""

    manifest: Manifest
    """The manifest.  For a pruned object, the manifest has no location."""
    action: ManifestAction
    """The action that was taken."""
    object: KubernetesObject | None = None
    """The last stored state of the object, or None if the object is gone."""

    def __str__(self) -> str:
        obj = self.manifest.object if self.object is None else self.object
        return f"{Manifest(object=obj)} {self.action}"


ManifestProgress: TypeAlias = Callable[[ManifestResult], None]
"""A function that is called with each result as soon as it is known.  If the function raises an exception, no further
manifests are processed."""


def check_progress(given: object, definition: str, *, arguments: int = 1) -> None:
    """Check that a progress callback is not an async function, because the callback would not be awaited."""
    if given is not None:
        check_sync(given, "on_progress", definition, arguments=arguments)

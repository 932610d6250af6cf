"""What tells one informer of a factory from another."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final, TypeAlias, final

import attrs

from ..client import FieldSelector, LabelSelector
from ..models import FieldMatcher, KubernetesObject, LabelMatcher, PartialObjectMetadata, metadata_kind, resource_of

Namespaces: TypeAlias = str | Sequence[str] | None
"""One namespace, several, or None for all of them."""


@final
class FromFactory(enum.Enum):
    """Stands for an option that is left out, where None has a meaning of its own."""

    DEFAULT = "what the factory says"

    def __repr__(self) -> str:
        return "FromFactory.DEFAULT"


DEFAULT: Final = FromFactory.DEFAULT


@final
@attrs.frozen
class InformerKey:
    """What an informer holds; requests with equal keys share one informer.  ``str()`` is the informer's name."""

    kind: type[KubernetesObject]
    """The class of its objects; for metadata alone, what :func:`~trioformer.models.metadata_kind` makes."""
    namespaces: tuple[str, ...] | None = None
    """Sorted; None for all, and for kinds that belong to none."""
    label_selector: str = ""
    """Only objects whose labels match; each condition once, sorted."""
    field_selector: str = ""
    """Only objects whose fields match; each condition once, sorted."""

    @classmethod
    def of(
        cls,
        kind: type[KubernetesObject],
        *,
        namespace: Namespaces = None,
        label_selector: LabelSelector | None = None,
        field_selector: FieldSelector | None = None,
        metadata_only: bool = False,
    ) -> InformerKey:
        """Make the key of a request; what means the same is equal.

        Args:
            kind: The kind's class.
            namespace: One namespace, several, or None for all.
            label_selector: In any form.
            field_selector: In any form.
            metadata_only: Turn ``kind`` into that of its metadata.

        Raises:
            SelectorError: A selector does not parse.
            TypeError: The class is no kind.
            ValueError: There is no namespace in ``namespace``, or the kind belongs to none.
        """
        resource = resource_of(kind)
        namespaces = namespaces_of(namespace)
        if namespaces is not None and not resource.namespaced:
            raise ValueError(f"{resource} belong to no namespace, so there are none in {', '.join(namespaces)}")
        labels = {str(requirement) for requirement in LabelMatcher.of(label_selector).requirements}
        fields = {str(requirement) for requirement in FieldMatcher.of(field_selector).requirements}
        if metadata_only and not issubclass(kind, PartialObjectMetadata):
            kind = metadata_kind(kind)
        return cls(kind, namespaces, ",".join(sorted(labels)), ",".join(sorted(fields)))

    @property
    def metadata_only(self) -> bool:
        """Whether it holds nothing but metadata."""
        return issubclass(self.kind, PartialObjectMetadata)

    def __str__(self) -> str:
        words = [self.kind.__resource__.kind]
        if self.metadata_only:
            words.insert(0, "metadata of")
        if self.namespaces is not None:
            words.append(f"in namespace{'s' if len(self.namespaces) > 1 else ''} {', '.join(self.namespaces)}")
        restrictions = [text for text in (self.label_selector, self.field_selector) if text]
        if restrictions:
            words.append(f"where {' and '.join(restrictions)}")
        return " ".join(words)


def namespaces_of(namespace: Namespaces) -> tuple[str, ...] | None:
    """Sort what may be one namespace or several; None stays.

    Raises:
        ValueError: There is none, or an empty one.
    """
    if namespace is None:
        return None
    given = (namespace,) if isinstance(namespace, str) else tuple(namespace)
    if not given or "" in given:
        raise ValueError("a namespace must not be empty, nor a sequence of them; None stands for all of them")
    return tuple(sorted(set(given)))

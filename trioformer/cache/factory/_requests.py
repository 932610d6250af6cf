"""What is asked of a factory, once by its own options for all informers, then by each call for one."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Final, Generic, Protocol, TypeAlias, TypeVar, cast, final

import attrs

from ...client import Client, FieldSelectorLike, LabelSelectorLike
from ...models import (
    FieldSelector,
    KubernetesObject,
    LabelSelector,
    PartialObjectMetadata,
    ResourceInfo,
    resource_of,
)
from ..informer._shared_informer import SharedInformer
from ..reflector._list_watch import ApiListWatch
from ..reflector._options import ReflectorOptions
from ..reflector._transform import Transform
from ..store._indexer import IndexFunc

T = TypeVar("T", bound=KubernetesObject)
AnyKind = TypeVar("AnyKind", bound=KubernetesObject)


class FactoryTransform(Protocol):
    """Makes of an object of any kind what a cache is to hold; must be quick.

    A function with a type variable is one: ``def smaller(obj: T) -> T``.
    """

    def __call__(self, obj: AnyKind, /) -> AnyKind:
        """Return the object, or another with the same namespace, name and resourceVersion."""
        ...


@final
@attrs.frozen
class InformerRequest(Generic[T]):
    """What one call asks for."""

    key: InformerKey
    resync_period: float | None
    """Seconds; None makes do with any."""
    transform: Transform[T] | FromFactory | None
    """Left out, it makes do with any."""
    indexers: Mapping[str, IndexFunc[T]]


@final
@attrs.frozen(kw_only=True)
class InformerDefaults:
    """A factory's own options: what holds for each informer, unless the call that asks for it says otherwise."""

    namespaces: tuple[str, ...] | None
    label_selector: LabelSelector
    field_selector: FieldSelector
    resync_period: float
    resync_periods: Mapping[ResourceInfo, float]
    transform: FactoryTransform | None
    drop_managed_fields: bool
    options: ReflectorOptions

    def request(
        self,
        kind: type[KubernetesObject],
        *,
        namespace: Namespaces | FromFactory,
        label_selector: LabelSelectorLike | FromFactory | None,
        field_selector: FieldSelectorLike | FromFactory | None,
        resync_period: float | None,
        transform: Transform[T] | FromFactory | None,
        indexers: Mapping[str, IndexFunc[T]] | None,
    ) -> InformerRequest[T]:
        """Complete a call's options.

        Raises:
            SelectorError: A selector does not parse.
            TypeError: The class is no kind.
            ValueError: A namespace is asked for that there cannot be.
        """
        if isinstance(namespace, FromFactory):
            namespace = self.namespaces if resource_of(kind).namespaced else None
        key = InformerKey.of(
            kind,
            namespace=namespace,
            label_selector=self.label_selector if isinstance(label_selector, FromFactory) else label_selector,
            field_selector=self.field_selector if isinstance(field_selector, FromFactory) else field_selector,
        )
        return InformerRequest(key, resync_period, transform, indexers if indexers is not None else {})

    def resync_period_of(self, asked: InformerRequest[T]) -> float:
        """The period of an informer that is made for a request."""
        if asked.resync_period is not None:
            return asked.resync_period
        return self.resync_periods.get(resource_of(asked.key.kind), self.resync_period)

    def transform_of(self, asked: InformerRequest[T]) -> Transform[T] | None:
        """The transform of an informer that is made for a request."""
        return self.transform if isinstance(asked.transform, FromFactory) else asked.transform

    def build(self, client: Client, asked: InformerRequest[T]) -> SharedInformer[T]:
        """Make the informer; sends nothing."""
        key = asked.key
        kind = cast("type[T]", key.kind)  # as the overloads of the factory's methods promise

        def source(namespace: str | None) -> ApiListWatch[T]:
            api = client.api(kind, namespace, drop_managed_fields=self.drop_managed_fields)
            return ApiListWatch(api, key.label_selector, key.field_selector)

        if key.namespaces is None or len(key.namespaces) == 1:
            sources: ApiListWatch[T] | dict[str, ApiListWatch[T]] = source(key.namespaces and key.namespaces[0])
        else:
            sources = {namespace: source(namespace) for namespace in key.namespaces}
        return SharedInformer(
            sources,
            resync_period=self.resync_period_of(asked),
            indexers=asked.indexers,
            transform=self.transform_of(asked),
            options=self.options,
        )


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
        label_selector: LabelSelectorLike | None = None,
        field_selector: FieldSelectorLike | None = None,
    ) -> InformerKey:
        """Make the key of a request; what means the same is equal.

        Args:
            kind: The kind's class.
            namespace: One namespace, several, or None for all.
            label_selector: In any form.
            field_selector: In any form.

        Raises:
            SelectorError: A selector does not parse.
            TypeError: The class is no kind.
            ValueError: There is no namespace in ``namespace``, or the kind belongs to none.
        """
        resource = resource_of(kind)
        namespaces = namespaces_of(namespace)
        if namespaces is not None and not resource.namespaced:
            raise ValueError(f"{resource} belong to no namespace, so there are none in {', '.join(namespaces)}")
        labels = {str(requirement) for requirement in LabelSelector.of(label_selector).requirements}
        fields = {str(requirement) for requirement in FieldSelector.of(field_selector).requirements}
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

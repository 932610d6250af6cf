"""The arguments of a request for an informer, their defaults in the factory, and the key of an informer."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Final, Generic, Protocol, TypeAlias, TypeVar, final

import attrs

from ..._text import some_of
from ...client import Client
from ...client._internal import FieldSelectorLike, LabelSelectorLike
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

Namespaces: TypeAlias = str | Sequence[str] | None
"""One namespace, several, or None for all namespaces."""


class FactoryTransform(Protocol):
    """Returns the object that a cache stores, for any kind; must be quick.

    An example is a function with a type variable: ``def smaller(obj: T) -> T``.
    """

    def __call__(self, obj: AnyKind, /) -> AnyKind:
        """Return the object, or a copy with the same namespace, name, uid and resourceVersion."""
        ...


@final
class FromFactory(enum.Enum):
    """The default of arguments where None has another meaning."""

    DEFAULT = "the factory's default"

    def __repr__(self) -> str:
        return "FromFactory.DEFAULT"


DEFAULT: Final = FromFactory.DEFAULT


@final
@attrs.frozen
class InformerKey:
    """The objects that an informer caches; requests with equal keys share one informer.  ``str()`` is its name."""

    kind: type[KubernetesObject]
    """The class of the objects; :func:`~trioformer.models.metadata_kind` makes one for metadata only."""
    namespaces: tuple[str, ...] | None = None
    """The namespaces, sorted; None for all, and for cluster-scoped kinds."""
    label_selector: str = ""
    """Only objects whose labels match; each requirement once, sorted."""
    field_selector: str = ""
    """Only objects whose fields match; each requirement once, sorted."""

    @classmethod
    def of(
        cls,
        kind: type[KubernetesObject],
        *,
        namespace: Namespaces = None,
        label_selector: LabelSelectorLike | None = None,
        field_selector: FieldSelectorLike | None = None,
    ) -> InformerKey:
        """Return the key of a request; requests for the same objects have equal keys.

        Args:
            kind: The kind's class.
            namespace: One namespace, several, or None for all namespaces.
            label_selector: Only objects whose labels match.
            field_selector: Only objects whose fields match.

        Raises:
            SelectorError: A selector does not parse.
            TypeError: The class is not a kind.
            ValueError: A namespace is empty, or given for a cluster-scoped kind.
        """
        resource = resource_of(kind)
        namespaces = sorted_namespaces(namespace)
        if namespaces is not None and not resource.namespaced:
            raise ValueError(f"{resource} are cluster-scoped and cannot be restricted to {', '.join(namespaces)}")
        labels = {str(requirement) for requirement in LabelSelector.of(label_selector).requirements}
        fields = {str(requirement) for requirement in FieldSelector.of(field_selector).requirements}
        return cls(kind, namespaces, ",".join(sorted(labels)), ",".join(sorted(fields)))

    @property
    def metadata_only(self) -> bool:
        """Whether the cache holds only the metadata of the objects."""
        return issubclass(self.kind, PartialObjectMetadata)

    def __str__(self) -> str:
        words = [self.kind.__resource__.kind]
        if self.metadata_only:
            words.insert(0, "metadata of")
        if self.namespaces is not None:
            words.append(f"in namespace{'s' if len(self.namespaces) > 1 else ''} {some_of(self.namespaces)}")
        restrictions = [text for text in (self.label_selector, self.field_selector) if text]
        if restrictions:
            words.append(f"where {' and '.join(restrictions)}")
        return " ".join(words)


def sorted_namespaces(namespace: Namespaces) -> tuple[str, ...] | None:
    """Return one or several namespaces as a sorted tuple, or None.

    Raises:
        ValueError: A namespace, or the sequence, is empty.
    """
    if namespace is None:
        return None
    given = (namespace,) if isinstance(namespace, str) else tuple(namespace)
    if not given or "" in given:
        raise ValueError("a namespace or a sequence of namespaces must not be empty; use None for all namespaces")
    return tuple(sorted(set(given)))


@final
@attrs.frozen(kw_only=True)
class InformerRequest(Generic[T]):
    """The arguments of one call of ``SharedInformerFactory.informer()`` or ``open_informer()``."""

    kind: type[T]
    namespace: Namespaces | FromFactory
    label_selector: LabelSelectorLike | FromFactory | None
    field_selector: FieldSelectorLike | FromFactory | None
    resync_period: float | None
    """Seconds; None accepts any period of an existing informer."""
    transform: Transform[T] | FromFactory | None
    """``DEFAULT`` accepts any transform of an existing informer."""
    indexers: Mapping[str, IndexFunc[T]] | None


@final
@attrs.frozen(kw_only=True)
class InformerDefaults:
    """The options of a factory, which apply to each informer unless its request overrides them."""

    namespaces: tuple[str, ...] | None
    label_selector: LabelSelector
    field_selector: FieldSelector
    resync_periods: Mapping[type[KubernetesObject] | ResourceInfo | None, float]
    """By class, and by resource for its other classes; None stands for all other kinds."""
    transform: FactoryTransform | None
    drop_managed_fields: bool
    options: ReflectorOptions

    def key_for(self, request: InformerRequest[T]) -> InformerKey:
        """Return the key of the informer for a request.

        Raises:
            SelectorError: A selector does not parse.
            TypeError: The class is not a kind.
            ValueError: A namespace is empty, or given for a cluster-scoped kind.
        """
        namespace, labels, fields = request.namespace, request.label_selector, request.field_selector
        if isinstance(namespace, FromFactory):
            namespace = self.namespaces if resource_of(request.kind).namespaced else None
        return InformerKey.of(
            request.kind,
            namespace=namespace,
            label_selector=self.label_selector if isinstance(labels, FromFactory) else labels,
            field_selector=self.field_selector if isinstance(fields, FromFactory) else fields,
        )

    def resync_period_for(self, request: InformerRequest[T]) -> float:
        """Return the resync period of a new informer."""
        if request.resync_period is not None:
            return request.resync_period
        keys = request.kind, resource_of(request.kind), None
        return next((self.resync_periods[key] for key in keys if key in self.resync_periods), 0.0)

    def transform_for(self, request: InformerRequest[T]) -> Transform[T] | None:
        """Return the transform of a new informer."""
        return self.transform if isinstance(request.transform, FromFactory) else request.transform

    def create_informer(self, client: Client, key: InformerKey, request: InformerRequest[T]) -> SharedInformer[T]:
        """Create an informer, without sending a request."""

        def source(namespace: str | None) -> ApiListWatch[T]:
            api = client.api(request.kind, namespace, drop_managed_fields=self.drop_managed_fields)
            return ApiListWatch(api, key.label_selector, key.field_selector)

        if key.namespaces is None or len(key.namespaces) == 1:
            sources: ApiListWatch[T] | dict[str, ApiListWatch[T]] = source(key.namespaces and key.namespaces[0])
        else:
            sources = {namespace: source(namespace) for namespace in key.namespaces}
        return SharedInformer(
            sources,
            resync_period=self.resync_period_for(request),
            indexers=request.indexers,
            transform=self.transform_for(request),
            options=self.options,
        )

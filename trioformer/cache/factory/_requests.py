"""Requests for an informer, the factory's default arguments, and the keys that identify informers."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeAlias, TypeVar, final

import attrs

from ..._text import some_of
from ...client import Client
from ...client._internal import FieldSelectorLike, LabelSelectorLike
from ...models import FieldSelector, KubernetesObject, LabelSelector, PartialObjectMetadata, ResourceInfo, resource_of
from ...models._internal import EMPTY_MAP
from ..informer._shared_informer import SharedInformer
from ..reflector._list_watch import ApiListWatch, checked_query, restrictions_of
from ..reflector._options import ReflectorOptions
from ..reflector._transform import Transform
from ..store._indexer import IndexFunc

if TYPE_CHECKING:
    from ..informer._divided_source import DividedSource

T = TypeVar("T", bound=KubernetesObject)
AnyKind = TypeVar("AnyKind", bound=KubernetesObject)

Namespaces: TypeAlias = str | Sequence[str] | None
"""One namespace, several namespaces, or None for all namespaces."""


class FactoryTransform(Protocol):
    """A transform for objects of any kind, which returns the object that the cache stores.  A transform must be fast.

    A generic function is a transform, for example ``def smaller(obj: T) -> T``.
    """

    def __call__(self, obj: AnyKind, /) -> AnyKind:
        """Return the object, or a changed copy with the same namespace, name, uid and resourceVersion."""
        ...


@final
class FromFactory(enum.Enum):
    """The type of :data:`DEFAULT`, the default value of arguments for which None has a meaning of its own."""

    DEFAULT = "the factory's default"

    def __repr__(self) -> str:
        return "FromFactory.DEFAULT"


DEFAULT: Final = FromFactory.DEFAULT


@final
@attrs.frozen
class InformerKey:
    """A description of the objects that an informer caches; requests with equal keys share one informer."""

    kind: type[KubernetesObject]
    """The class of the objects, which may be a result of :func:`~trioformer.models.metadata_kind`."""
    namespaces: tuple[str, ...] | None = None
    """The sorted namespaces, or None for all namespaces and for cluster-scoped kinds."""
    label_selector: str = ""
    """The label selector, with sorted requirements and without duplicates."""
    field_selector: str = ""
    """The field selector, with sorted requirements and without duplicates."""
    query: Mapping[str, str] = attrs.field(default=EMPTY_MAP, converter=checked_query)
    """Further query parameters for each list and watch."""

    @classmethod
    def of(
        cls,
        kind: type[KubernetesObject],
        *,
        namespace: Namespaces = None,
        label_selector: LabelSelectorLike | None = None,
        field_selector: FieldSelectorLike | None = None,
        query: Mapping[str, str] | None = None,
    ) -> InformerKey:
        """Return the key of the informer for these objects; requests for the same objects have equal keys.

        Args:
            kind: The class of the objects.
            namespace: One namespace or several namespaces.  The default, None, selects all namespaces.
            label_selector: The label selector of the objects.  The default, None, selects all objects.
            field_selector: The field selector of the objects.  The default, None, selects all objects.
            query: Further query parameters for each list and watch.

        Raises:
            SelectorError: A selector is not valid.
            TypeError: The class is not the class of a Kubernetes kind.
            ValueError: A namespace is an empty string, a namespace is given for a cluster-scoped kind, or ``query``
                contains a parameter that the informer sets itself.
        """
        resource = resource_of(kind)
        namespaces = sorted_namespaces(namespace)
        if namespaces is not None and not resource.namespaced:
            raise ValueError(f"{resource} are cluster-scoped and cannot be restricted to {', '.join(namespaces)}")
        labels = {str(requirement) for requirement in LabelSelector.of(label_selector).requirements}
        fields = {str(requirement) for requirement in FieldSelector.of(field_selector).requirements}
        return cls(kind, namespaces, ",".join(sorted(labels)), ",".join(sorted(fields)), query)

    @property
    def metadata_only(self) -> bool:
        """Whether the cache contains only the metadata of the objects."""
        return issubclass(self.kind, PartialObjectMetadata)

    def __str__(self) -> str:
        words = [self.kind.__resource__.kind]
        if self.metadata_only:
            words.insert(0, "metadata of")
        if self.namespaces is not None:
            words.append(f"in namespace{'s' if len(self.namespaces) > 1 else ''} {some_of(self.namespaces)}")
        if restrictions := restrictions_of(self.label_selector, self.field_selector, self.query):
            words.append(f"where {restrictions}")
        return " ".join(words)


def sorted_namespaces(namespace: Namespaces) -> tuple[str, ...] | None:
    """Return one or several namespaces as a sorted tuple, or None if all namespaces are requested.

    Raises:
        ValueError: A namespace is an empty string, or the sequence is empty.
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
    """The arguments of a call to ``SharedInformerFactory.informer()`` or ``open_informer()``."""

    kind: type[T]
    namespace: Namespaces | FromFactory
    label_selector: LabelSelectorLike | FromFactory | None
    field_selector: FieldSelectorLike | FromFactory | None
    query: Mapping[str, str] | FromFactory | None
    resync_period: float | None
    """The resync period in seconds, or None to accept any period of an existing informer."""
    transform: Transform[T] | FromFactory | None
    """The transform, or ``DEFAULT`` to accept any transform of an existing informer."""
    indexers: Mapping[str, IndexFunc[T]] | None


class Divider(Protocol):
    """What divides the informers of a factory between several processes."""

    def divide(self, source: ApiListWatch[T] | Mapping[str, ApiListWatch[T]]) -> DividedSource[T] | None:
        """Return the divided source of a new informer, or None if the informer caches all objects."""
        ...

    def add(self, informer: SharedInformer[T], source: DividedSource[T]) -> None:
        """Add an informer with a divided source."""


@final
@attrs.frozen(kw_only=True)
class InformerDefaults:
    """The options of a factory, which apply to each informer unless the request overrides them."""

    namespaces: tuple[str, ...] | None
    label_selector: LabelSelector
    field_selector: FieldSelector
    query: Mapping[str, str]
    resync_periods: Mapping[type[KubernetesObject] | ResourceInfo | None, float]
    """The resync period of each kind.  The class of a request is looked up first, then its resource, and then the key
    None, which stands for all other kinds."""
    transform: FactoryTransform | None
    drop_managed_fields: bool
    options: ReflectorOptions
    divider: Divider | None = None
    """What divides the informers between several processes."""

    def key_for(self, request: InformerRequest[T]) -> InformerKey:
        """Return the key of the informer that a request refers to, after applying the defaults.

        Raises:
            SelectorError: A selector is not valid.
            TypeError: The class is not the class of a Kubernetes kind.
            ValueError: A namespace is an empty string, a namespace is given for a cluster-scoped kind, or ``query``
                contains a parameter that the informer sets itself.
        """
        namespace, labels, fields = request.namespace, request.label_selector, request.field_selector
        if isinstance(namespace, FromFactory):
            namespace = self.namespaces if resource_of(request.kind).namespaced else None
        return InformerKey.of(
            request.kind,
            namespace=namespace,
            label_selector=self.label_selector if isinstance(labels, FromFactory) else labels,
            field_selector=self.field_selector if isinstance(fields, FromFactory) else fields,
            query=self.query if isinstance(request.query, FromFactory) else request.query,
        )

    def resync_period_for(self, request: InformerRequest[T]) -> float:
        """Return the resync period of a new informer for this request."""
        if request.resync_period is not None:
            return request.resync_period
        keys = request.kind, resource_of(request.kind), None
        return next((self.resync_periods[key] for key in keys if key in self.resync_periods), 0.0)

    def transform_for(self, request: InformerRequest[T]) -> Transform[T] | None:
        """Return the transform of a new informer for this request."""
        return self.transform if isinstance(request.transform, FromFactory) else request.transform

    def create_informer(self, client: Client, key: InformerKey, request: InformerRequest[T]) -> SharedInformer[T]:
        """Create an informer without starting it."""

        def source(namespace: str | None) -> ApiListWatch[T]:
            api = client.api(request.kind, namespace, drop_managed_fields=self.drop_managed_fields)
            return ApiListWatch(api, key.label_selector, key.field_selector, key.query)

        if key.namespaces is None or len(key.namespaces) == 1:
            sources: ApiListWatch[T] | dict[str, ApiListWatch[T]] = source(key.namespaces and key.namespaces[0])
        else:
            sources = {namespace: source(namespace) for namespace in key.namespaces}
        divided = None if self.divider is None else self.divider.divide(sources)
        informer = SharedInformer(
            divided or sources,
            resync_period=self.resync_period_for(request),
            indexers=request.indexers,
            transform=self.transform_for(request),
            options=self.options,
        )
        if self.divider is not None and divided is not None:
            self.divider.add(informer, divided)
        return informer

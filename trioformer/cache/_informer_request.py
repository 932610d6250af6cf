"""What is asked of a factory, once by its own options for all informers, then by each call for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar, cast, final

import attrs

from ..client import Client, FieldSelector, LabelSelector
from ..models import FieldMatcher, KubernetesObject, LabelMatcher, ResourceInfo, resource_of
from ._arrivals import Transform
from ._indexer import IndexFunc
from ._informer_key import FromFactory, InformerKey, Namespaces
from ._list_watch import ApiListWatch
from ._reflector_options import ReflectorOptions
from ._shared_informer import SharedInformer

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
    label_selector: LabelMatcher
    field_selector: FieldMatcher
    resync_period: float
    resync_periods: Mapping[ResourceInfo, float]
    transform: FactoryTransform | None
    drop_managed_fields: bool
    options: ReflectorOptions

    def request(
        self,
        kind: type[KubernetesObject],
        *,
        metadata_only: bool,
        namespace: Namespaces | FromFactory,
        label_selector: LabelSelector | FromFactory | None,
        field_selector: FieldSelector | FromFactory | None,
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
            metadata_only=metadata_only,
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

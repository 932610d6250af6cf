"""The lister of a cache of which this process owns only some parts."""

from __future__ import annotations

from typing import TypeVar, final

import attrs

from ...models import KubernetesObject, LabelSelector
from ._division import Share
from ._lister import Lister

T = TypeVar("T", bound=KubernetesObject)


@final
@attrs.frozen(eq=False, repr=False)
class DividedLister(Lister[T]):
    """A lister that raises `NotOwnedError` for the keys of other processes, which it must not report as missing.

    The methods that return several objects return those that this process owns.
    """

    _share: Share = attrs.field(kw_only=True, alias="share")

    def _read(self, key: str, *, allow_stale: bool = False) -> T | None:
        obj = super()._read(key, allow_stale=allow_stale)
        self._share.check_key(key)
        return obj

    def __contains__(self, key: object) -> bool:
        is_found = super().__contains__(key)
        if isinstance(key, str) and key:
            self._share.check_key(key)
        return is_found

    def _candidates(self, labels: LabelSelector, namespace: str | None, name: str | None = None) -> tuple[T, ...]:
        if namespace is not None:
            self._share.check_namespace(namespace)
        return super()._candidates(labels, namespace, name)

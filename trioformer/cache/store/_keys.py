"""Names and keys that no object of a kind can have: a lister would return None for them, as for a deleted object.

They are checked after nothing was found, so that reading an object costs nothing more.
"""

from __future__ import annotations

from ..._text import quoted
from ...models import KubernetesObject, resource_of


def check_name(name: object, namespace: object, kind: type[KubernetesObject] | None) -> None:
    """Check a name and a namespace under which a lister has found nothing.

    Args:
        name: The name; without a namespace it may be a key.
        namespace: The namespace; None or empty for none.
        kind: The kind, or None if it is not known.

    Raises:
        TypeError: One of them is not a string.
        ValueError: The kind is namespaced and there is no namespace, or the other way round, or the name has a slash.
    """
    if not isinstance(name, str):
        raise TypeError(f"a name must be a string, not {_described(name)}")
    if not isinstance(namespace, str | None):
        raise TypeError(f"a namespace must be a string, not {_described(namespace)}")
    if not namespace:
        check_key(name, kind)
    elif kind is not None and not resource_of(kind).namespaced:
        raise ValueError(f"{resource_of(kind)} are not namespaced; omit the namespace {quoted(namespace)}")
    elif "/" in name:
        raise ValueError(f"{quoted(name)} is not a name: it contains '/'; pass a key without a namespace")


def check_key(key: object, kind: type[KubernetesObject] | None) -> None:
    """Check a key under which a lister has found nothing.

    Raises:
        TypeError: It is not a string.
        ValueError: No object of the kind can have it: the namespace is missing, or too much.
    """
    if not isinstance(key, str):
        raise TypeError(f"a key must be a string, 'namespace/name' or 'name', not {_described(key)}")
    if kind is None:
        return
    resource = resource_of(kind)
    if resource.namespaced and "/" not in key:
        raise ValueError(
            f"{resource} are namespaced, and {quoted(key)} has no namespace; "
            f"write lister.get(name, namespace=...) or lister['namespace/name']"
        )
    if not resource.namespaced and "/" in key:
        raise ValueError(f"{resource} are not namespaced, and {quoted(key)} has a namespace; pass only the name")


def _described(value: object) -> str:
    """Return the type of a value, and what to pass instead of an object that has a name."""
    kind = type(value).__name__
    if isinstance(value, KubernetesObject):
        return f"an object ({kind}); pass obj.name and namespace=obj.namespace, or key_of(obj) for a key"
    if isinstance(getattr(value, "name", None), str) and hasattr(value, "namespace"):
        return f"{kind}; pass its name and namespace=, or str() of it for a key"
    return kind

"""Conditions for ``wait_for`` (``kubectl wait --for``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, cast, final

import attrs

from ..models import KubernetesObject, Unstructured, to_dict

_JSONObject: TypeAlias = Mapping[str, object]


@final
@attrs.frozen
class Condition:
    """A predicate for existing objects of any kind; made by functions such as :func:`has_condition`.

    Call conditions to combine them::

        ready = has_condition("Ready")
        await wait_for(pods, "web-0", lambda pod: ready(pod) and pod.spec.node_name == "node-1")
    """

    description: str
    """A description for messages."""
    is_met_by: Callable[[KubernetesObject], bool] = attrs.field(repr=False)
    """The predicate."""
    missing_ok: bool = False
    """Whether ``wait_for`` waits for a missing object even without ``missing_ok=True``."""

    def __call__(self, obj: KubernetesObject) -> bool:
        """Return whether the object meets the condition."""
        return self.is_met_by(obj)

    def __str__(self) -> str:
        return self.description


@final
@attrs.frozen
class Deletion:
    """The condition that an object is deleted; made by :func:`deleted`."""

    uid: str | None = None
    """The object's uid; None for the object that exists when the wait begins."""

    def __str__(self) -> str:
        return "deletion" if self.uid is None else f"deletion of uid {self.uid}"


def created() -> Condition:
    """Return the condition that the object exists (``kubectl wait --for=create``)."""
    return Condition("creation", lambda _: True, missing_ok=True)


def deleted(*, uid: str | None = None) -> Deletion:
    """Return the condition that the object is deleted (``kubectl wait --for=delete``).

    It is met when no object of that name exists, or when the object has another uid: the old object was deleted then,
    even if no watch has seen the deletion.

    Args:
        uid: The uid of the object, for example the uid that a deletion returned.  None for the object that exists when
            the wait begins; it may already be a new object of the same name.
    """
    return Deletion(uid)


def has_condition(type: str, status: str = "True") -> Condition:  # noqa: A002  # what the API calls it
    """Return the condition that an entry of ``status.conditions`` has a status (``kubectl wait --for=condition=…``).

    An entry for an older generation of the object does not count.  The entry's ``observedGeneration`` takes precedence
    over the status's.
    A missing entry never meets the condition.

    Args:
        type: Such as ``Ready`` or ``Available``; not case-sensitive, as in kubectl.
        status: ``True``, ``False`` or ``Unknown``; not case-sensitive.
    """

    def is_met_by(obj: KubernetesObject) -> bool:
        # Read the JSON: the class of a custom kind may have no status field.
        whole = cast("_JSONObject", to_dict(obj))
        conditions = _mapping(whole.get("status")).get("conditions")
        entries = map(_mapping, conditions) if isinstance(conditions, list) else ()
        entry = next((entry for entry in entries if _is_same(entry.get("type"), type)), None)
        return entry is not None and _is_current(entry, whole) and _is_same(entry.get("status"), status)

    return Condition(f"condition {type}={status}", is_met_by)


def has_field(path: str, value: str | float) -> Condition:
    """Return the condition that a field has a value (``kubectl wait --for=jsonpath=…``).

    Args:
        path: Attribute names and keys of maps joined by dots, such as ``status.phase``, ``spec.node_name`` or
            ``metadata.labels.app``.  For an :class:`~trioformer.models.Unstructured`, the names in its JSON.  To check
            an item of a list, or a name that contains a dot, write a predicate.
        value: The value to compare with.  An absent field does not equal any value, and true does not equal 1.

    Raises:
        AttributeError: The kind does not have the field; ``wait_for`` raises it.
    """
    names = path.split(".")

    def is_met_by(obj: KubernetesObject) -> bool:
        found: object = obj
        for name in names:
            found = found.get(name) if isinstance(found, Mapping | Unstructured) else getattr(found, name)
            if found is None:
                return False
        return found == value and isinstance(found, bool) is isinstance(value, bool)

    return Condition(f"{path}={value}", is_met_by)


def _mapping(value: object) -> _JSONObject:
    return cast("_JSONObject", value) if isinstance(value, Mapping) else {}


def _is_same(found: object, wanted: str) -> bool:
    return isinstance(found, str) and found.casefold() == wanted.casefold()


def _is_current(entry: _JSONObject, whole: _JSONObject) -> bool:
    """Return whether an entry is for the current generation of the object (kubectl ``pkg/cmd/wait``)."""
    generation = _mapping(whole.get("metadata")).get("generation")
    observed = entry.get("observedGeneration")
    if not isinstance(observed, int):
        observed = _mapping(whole.get("status")).get("observedGeneration")
    return not isinstance(generation, int) or not isinstance(observed, int) or observed >= generation

"""The conditions that ``wait_for`` can wait for (``kubectl wait --for``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, cast, final

import attrs

from ..models import KubernetesObject, Unstructured, to_dict

FieldValue: TypeAlias = str | int | float | bool
"""A value with which a field can be compared."""

_JSONObject: TypeAlias = Mapping[str, object]


@final
@attrs.frozen
class Condition:
    """A predicate for existing objects of any kind; made by functions such as :func:`has_condition`.

    It can be called, so that conditions can be combined::

        ready = has_condition("Ready")
        await wait_for(pods, "web-0", lambda pod: ready(pod) and pod.spec.node_name == "node-1")
    """

    description: str
    """The condition in words, for messages."""
    is_met_by: Callable[[KubernetesObject], bool] = attrs.field(repr=False)
    """The predicate."""
    missing_ok: bool = False
    """Whether ``wait_for`` also waits for the object to exist, without ``missing_ok=True``."""

    def __call__(self, obj: KubernetesObject) -> bool:
        """Whether the object meets the condition."""
        return self.is_met_by(obj)

    def __str__(self) -> str:
        return self.description


@final
@attrs.frozen
class Deletion:
    """The condition that an object is gone; made by :func:`deleted`."""

    uid: str | None = None
    """The uid of the object; None for the object that exists when the wait begins."""

    def __str__(self) -> str:
        return "deletion" if self.uid is None else f"deletion of uid {self.uid}"


def created() -> Condition:
    """Return the condition that the object exists (``kubectl wait --for=create``)."""
    return Condition("creation", lambda _: True, missing_ok=True)


def deleted(*, uid: str | None = None) -> Deletion:
    """Return the condition that the object is gone (``kubectl wait --for=delete``).

    It is met when no object of that name exists, or one with another uid: a new uid means that the old object was
    deleted, even when no watch has seen the deletion.

    Args:
        uid: The uid of the object, such as that of one which the caller has just deleted; None for the object that
            exists when the wait begins, which may already be a new object of the same name.
    """
    return Deletion(uid)


def has_condition(type: str, status: str = "True") -> Condition:  # noqa: A002  # what the API calls it
    """Return the condition that an entry of ``status.conditions`` has a status (``kubectl wait --for=condition=…``).

    An entry for an older generation of the object does not count; its own ``observedGeneration`` decides, or else that
    of the whole status.
    A missing entry does not meet the condition, whatever the status.

    Args:
        type: Such as ``Ready`` or ``Available``; case does not matter, as for kubectl.
        status: ``True``, ``False`` or ``Unknown``; case does not matter.
    """

    def is_met_by(obj: KubernetesObject) -> bool:
        # Reads the JSON, so that a custom kind needs no class for its status.
        whole = cast("_JSONObject", to_dict(obj))
        conditions = _mapping(whole.get("status")).get("conditions")
        entries = map(_mapping, conditions) if isinstance(conditions, list) else ()
        entry = next((entry for entry in entries if _is_same(entry.get("type"), type)), None)
        return entry is not None and _is_current(entry, whole) and _is_same(entry.get("status"), status)

    return Condition(f"condition {type}={status}", is_met_by)


def has_field(path: str, value: FieldValue) -> Condition:
    """Return the condition that a field has a value (``kubectl wait --for=jsonpath=…``).

    Args:
        path: Attribute names joined by dots, such as ``status.phase`` or ``spec.node_name``, and the keys of maps, as
            in ``metadata.labels.app``; for an :class:`~trioformer.models.Unstructured` the names in its JSON.  Write a
            predicate for an element of a list, and for a name with a dot.
        value: The value that the field must be equal to; an absent field is not equal to any value, and true is not 1.

    Raises:
        AttributeError: Raised by ``wait_for``: the kind has no such field.
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

"""What can be waited for (``kubectl wait --for``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, cast, final

import attrs

from ..models import KubernetesObject, Unstructured, to_dict

FieldValue: TypeAlias = str | int | float | bool
"""What a field can be compared with."""

_JSONObject: TypeAlias = Mapping[str, object]


@final
@attrs.frozen
class Condition:
    """A question about an object that there is, of any kind; made by functions such as :func:`has_condition`.

    It is called like any other predicate, so that conditions can be combined::

        ready = has_condition("Ready")
        await wait_for(pods, "web-0", lambda pod: ready(pod) and pod.spec.node_name == "node-1")
    """

    description: str
    """What is waited for, for errors."""
    is_met_by: Callable[[KubernetesObject], bool] = attrs.field(repr=False)
    """The question."""
    missing_ok: bool = False
    """Whether the object is waited for too, without being told."""

    def __call__(self, obj: KubernetesObject) -> bool:
        """Whether the object meets the condition."""
        return self.is_met_by(obj)

    def __str__(self) -> str:
        return self.description


@final
@attrs.frozen
class Deletion:
    """That an object is gone; made by :func:`deleted`."""

    uid: str | None = None
    """Whose end is waited for; None for the object that is there at first."""

    def __str__(self) -> str:
        return "deletion" if self.uid is None else f"deletion of uid {self.uid}"


def created() -> Condition:
    """Make the condition that there is such an object (``kubectl wait --for=create``)."""
    return Condition("creation", lambda _: True, missing_ok=True)


def deleted(*, uid: str | None = None) -> Deletion:
    """Make the condition that an object is gone (``kubectl wait --for=delete``).

    It is met when there is no object of that name, or another one: a new uid means that the old object was deleted,
    even when nobody has seen the moment in between.

    Args:
        uid: Whose end to wait for, such as that of the object which one has just deleted; None for the object that is
            there when the waiting begins, which may be its successor already.
    """
    return Deletion(uid)


def has_condition(type: str, status: str = "True") -> Condition:  # noqa: A002  # what the API calls it
    """Make the condition that an entry of ``status.conditions`` has a status (``kubectl wait --for=condition=…``).

    An entry that was written for an older generation of the object does not count: its own ``observedGeneration``
    says so, or that of the whole status.
    Absent conditions are not met, whatever the status that is asked for.

    Args:
        type: Such as ``Ready`` or ``Available``; upper and lower case are the same, as for kubectl.
        status: ``True``, ``False`` or ``Unknown``; likewise.
    """

    def is_met_by(obj: KubernetesObject) -> bool:
        # From the JSON, so that a custom kind needs no class for its status.
        whole = cast("_JSONObject", to_dict(obj))
        conditions = _mapping(whole.get("status")).get("conditions")
        entries = map(_mapping, conditions) if isinstance(conditions, list) else ()
        entry = next((entry for entry in entries if _is_same(entry.get("type"), type)), None)
        return entry is not None and _is_current(entry, whole) and _is_same(entry.get("status"), status)

    return Condition(f"condition {type}={status}", is_met_by)


def has_field(path: str, value: FieldValue) -> Condition:
    """Make the condition that a field has a value (``kubectl wait --for=jsonpath=…``).

    Args:
        path: Attribute names joined by dots, such as ``status.phase`` or ``spec.node_name``, and the keys of maps, as
            in ``metadata.labels.app``; of an :class:`~trioformer.models.Unstructured` the names in its JSON.  For what
            is in a list, or has a dot in its name, write a predicate.
        value: What the field must be equal to; one that is absent is equal to nothing.

    Raises:
        AttributeError: From waiting: the kind has no such field.
    """
    names = path.split(".")

    def is_met_by(obj: KubernetesObject) -> bool:
        found: object = obj
        for name in names:
            found = found.get(name) if isinstance(found, Mapping | Unstructured) else getattr(found, name)
            if found is None:
                return False
        return found == value

    return Condition(f"{path}={value}", is_met_by)


def _mapping(value: object) -> _JSONObject:
    return cast("_JSONObject", value) if isinstance(value, Mapping) else {}


def _is_same(found: object, asked: str) -> bool:
    return isinstance(found, str) and found.casefold() == asked.casefold()


def _is_current(entry: _JSONObject, whole: _JSONObject) -> bool:
    """Whether a condition was written for the object as it is (kubectl ``pkg/cmd/wait``)."""
    generation = _mapping(whole.get("metadata")).get("generation")
    observed = entry.get("observedGeneration")
    if not isinstance(observed, int):
        observed = _mapping(whole.get("status")).get("observedGeneration")
    return not isinstance(generation, int) or not isinstance(observed, int) or observed >= generation

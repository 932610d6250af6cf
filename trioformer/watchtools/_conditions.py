"""Conditions for ``wait_for``, which correspond to ``kubectl wait --for``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, cast, final

import attrs

from ..models import KubernetesObject, Unstructured, to_dict

_JSONObject: TypeAlias = Mapping[str, object]


@final
@attrs.frozen
class Condition:
    """A predicate for existing objects of any kind. Functions such as :func:`has_condition` return it.

    To combine conditions, call them in a function::

        ready = has_condition("Ready")
        await wait_for(pods, "web-0", lambda pod: ready(pod) and pod.spec.node_name == "node-1")
    """

    description: str
    """The description of the condition in messages."""
    is_met_by: Callable[[KubernetesObject], bool] = attrs.field(repr=False)
    """The function that returns whether an object meets the condition."""
    missing_ok: bool = False
    """Whether ``wait_for`` also waits for an object that does not exist, even without ``missing_ok=True``."""

    def __call__(self, obj: KubernetesObject) -> bool:
        """Return whether the object meets the condition."""
        return self.is_met_by(obj)

    def __str__(self) -> str:
        return self.description


@final
@attrs.frozen
class Deletion:
    """The condition that an object has been deleted, as returned by :func:`deleted`."""

    uid: str | None = None
    """The uid of the object. If None, the condition applies to the object that exists when the wait begins."""

    def __str__(self) -> str:
        return "deletion" if self.uid is None else f"deletion of uid {self.uid}"


def created() -> Condition:
    """Return the condition that the object exists (``kubectl wait --for=create``)."""
    return Condition("creation", lambda _: True, missing_ok=True)


def deleted(*, uid: str | None = None) -> Deletion:
    """Return the condition that the object has been deleted (``kubectl wait --for=delete``).

    The condition is met when no object with the name exists, or when the existing object has a different uid. A
    different uid shows that the old object was deleted, even if no watch has reported the deletion.

    Args:
        uid: The uid of the object, such as the uid in the response to a delete request. If None, the condition applies
            to the object that exists when the wait begins. This may already be a new object with the same name.
    """
    return Deletion(uid)


def has_condition(type: str, status: str = "True") -> Condition:  # noqa: A002  # what the API calls it
    """Return the condition that an entry of ``status.conditions`` has a status (``kubectl wait --for=condition=…``).

    The condition is not met if the entry is missing, or if it describes an older generation of the object. If the entry
    has no ``observedGeneration``, the ``observedGeneration`` of the status is used.

    Args:
        type: The type of the entry, such as ``Ready`` or ``Available``. Case is ignored, as in kubectl.
        status: The required status: ``True``, ``False`` or ``Unknown``. Case is ignored.
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
    """Return the condition that a field has the given value (``kubectl wait --for=jsonpath=…``).

    Args:
        path: The path of the field: attribute names and map keys joined by dots, such as ``status.phase``,
            ``spec.node_name`` or ``metadata.labels.app``. For an :class:`~trioformer.models.Unstructured`, use the JSON
            names. To check a list item, or a field whose name contains a dot, write a predicate instead.
        value: The required value. A missing field does not equal any value, and ``True`` does not equal 1.

    Raises:
        AttributeError: The kind does not have the field. This error is raised when ``wait_for`` checks the condition.
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
    """Return whether an entry describes the current generation of the object (kubectl ``pkg/cmd/wait``)."""
    generation = _mapping(whole.get("metadata")).get("generation")
    observed = entry.get("observedGeneration")
    if not isinstance(observed, int):
        observed = _mapping(whole.get("status")).get("observedGeneration")
    return not isinstance(generation, int) or not isinstance(observed, int) or observed >= generation

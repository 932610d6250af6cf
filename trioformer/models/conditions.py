"""Conditions, the entries of ``status.conditions``: find one, read one, set one.

::

    from trioformer.models.conditions import Condition, set_condition

    conditions = set_condition(
        website.status.conditions, type="Ready", status=True, reason="Complete", message="all objects exist"
    )

Custom kinds use :class:`Condition` of ``meta/v1``.  Most built-in kinds have their own class, such as ``PodCondition``,
with further fields; the functions accept all of them, and ``model=`` is the class of new conditions.

Source: apimachinery ``pkg/api/meta/conditions.go``; "Typical status properties" in the API conventions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar, overload

import attrs

from .._suggestions import describe
from .._text import quoted
from ._lazy import evolve
from ._plain import from_dict
from .meta_v1 import Condition as Condition

__all__ = [
    "Condition",
    "ConditionLike",
    "ConditionStatus",
    "find_condition",
    "is_condition_true",
    "remove_condition",
    "set_condition",
]


class ConditionLike(Protocol):
    """The common fields of conditions: of :class:`Condition`, ``PodCondition``, ``DeploymentCondition`` and others."""

    @property
    def type(self) -> str | None:
        """Such as ``Ready``; a list has one condition of each type."""

    @property
    def status(self) -> str | None:
        """``True``, ``False`` or ``Unknown``."""

    @property
    def reason(self) -> str | None:
        """The reason for the status, one word for programs."""

    @property
    def message(self) -> str | None:
        """The reason for people."""

    @property
    def last_transition_time(self) -> datetime | None:
        """The time of the last change of the status."""


T = TypeVar("T", bound=ConditionLike)

ConditionStatus: TypeAlias = Literal["True", "False", "Unknown"]
"""The status of a condition; a string in JSON, too."""

_STATUSES: Final = ("True", "False", "Unknown")
# kubebuilder puts these patterns into every CRD with a Condition (apimachinery pkg/apis/meta/v1/types.go).
_REASON: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_DNS: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_TYPE: Final = re.compile(rf"(?:{_DNS}(?:\.{_DNS})*/)?(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_MAX_REASON: Final = 1024
_MAX_TYPE: Final = 316


def find_condition(conditions: Iterable[T], type: str) -> T | None:  # noqa: A002  # what the API calls it
    """Return the condition of a type; None if there is no such condition.

    Args:
        conditions: Conditions of any kind, such as ``pod.status.conditions``.
        type: Such as ``Ready``; case matters, as for API servers.
    """
    return next((each for each in conditions if each.type == type), None)


def is_condition_true(conditions: Iterable[ConditionLike], type: str) -> bool:  # noqa: A002
    """Whether there is a condition of a type, and its status is ``True``.

    Args:
        conditions: Conditions of any kind.
        type: Such as ``Ready``.
    """
    found = find_condition(conditions, type)
    return found is not None and found.status == "True"


def remove_condition(conditions: Iterable[T], type: str) -> tuple[T, ...]:  # noqa: A002
    """Return the conditions without a type.

    Args:
        conditions: Conditions of any kind.
        type: Such as ``Ready``.
    """
    return tuple(each for each in conditions if each.type != type)


@overload
def set_condition(
    conditions: Iterable[Condition | Mapping[str, object]],
    *,
    type: str,
    status: ConditionStatus | bool,
    reason: str,
    message: str = "",
    observed_generation: int | None = None,
    now: datetime | None = None,
) -> tuple[Condition, ...]: ...
@overload
def set_condition(
    conditions: Iterable[T | Mapping[str, object]],
    *,
    type: str,
    status: ConditionStatus | bool,
    reason: str,
    message: str = "",
    observed_generation: int | None = None,
    now: datetime | None = None,
    model: type[T],
) -> tuple[T, ...]: ...
def set_condition(
    conditions: Iterable[Any],
    *,
    type: str,  # noqa: A002  # what the API calls it
    status: ConditionStatus | bool,
    reason: str,
    message: str = "",
    observed_generation: int | None = None,
    now: datetime | None = None,
    model: type[Any] = Condition,
) -> tuple[Any, ...]:
    """Return the conditions with one condition set; its time changes only if its status changes.

    The result equals ``conditions`` if nothing has changed, so write the status only if it differs.
    Other conditions, the order, and fields that are not arguments stay unchanged.

    Args:
        conditions: The current ones, or the mappings of an :class:`Unstructured`.
        type: Such as ``Ready``.
        status: ``"True"``, ``"False"`` or ``"Unknown"``; a bool is one of the first two.
        reason: The reason in one word, such as ``MinimumReplicasAvailable``.
        message: The reason for people.
        observed_generation: The ``metadata.generation`` of the object; None removes the field.
        now: The time of a transition, written in whole seconds; None for the current time.
        model: The class of the conditions, such as ``PodCondition``.

    Raises:
        TypeError: A condition has another class than ``model``, or the model has no ``observed_generation``.
        ValueError: An API server would refuse the status, the type or the reason, or ``now`` has no time zone.
    """
    _check(model, type, status, reason, observed_generation, now)
    text = str(status)
    before = [_as(model, each) for each in conditions]
    old = find_condition(before, type)
    at = datetime.now(UTC) if now is None else now
    wanted: dict[str, object] = {
        "type": type,
        "status": text,
        "reason": reason,
        # meta/v1 requires it, even if it is empty; in the classes of built-in kinds it is optional.
        "message": message or attrs.fields(model).message.default,
    }
    if hasattr(model, "observed_generation"):
        wanted["observed_generation"] = observed_generation
    if old is None or old.status != text or old.last_transition_time is None:
        wanted["last_transition_time"] = at.replace(microsecond=0)
    if old is None:
        return (*before, model(**{name: value for name, value in wanted.items() if value is not None}))
    changed = {name: value for name, value in wanted.items() if getattr(old, name) != value}
    new = evolve(old, **changed) if changed else old
    return tuple(new if each is old else each for each in before)


def _as(model: type[Any], condition: object) -> Any:
    if isinstance(condition, model):
        return condition
    if isinstance(condition, Mapping):
        return from_dict(model, condition)
    raise TypeError(
        f"a condition must be a {model.__name__}, not {describe(condition)}; "
        f"pass model={condition.__class__.__name__} for conditions of that class"
    )


def _check(
    model: type[Any], kind: str, status: object, reason: str, observed_generation: object, now: datetime | None
) -> None:
    if str(status) not in _STATUSES or not isinstance(status, str | bool):
        raise ValueError(f"the status of condition {quoted(kind)} must be 'True', 'False' or 'Unknown', not {status!r}")
    if len(kind) > _MAX_TYPE or not _TYPE.fullmatch(kind):
        raise ValueError(f"{quoted(kind)} is not a valid type of a condition; write a name such as 'Ready'")
    if issubclass(model, Condition) and (len(reason) > _MAX_REASON or not _REASON.fullmatch(reason)):
        raise ValueError(
            f"{quoted(reason)} is not a valid reason of condition {kind}; write one word, such as 'Complete', "
            "and the rest in message="
        )
    if observed_generation is not None and not hasattr(model, "observed_generation"):
        raise TypeError(f"{model.__name__} has no observed_generation; omit it")
    if now is not None and now.utcoffset() is None:
        raise ValueError("now has no time zone; write datetime.now(UTC)")

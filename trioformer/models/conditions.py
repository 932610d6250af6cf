"""Find, read and set conditions, which are the entries of ``status.conditions``.

::

    from trioformer.models.conditions import Condition, set_condition

    conditions = set_condition(
        website.status.conditions, type="Ready", status=True, reason="Complete", message="all objects exist"
    )

Custom kinds use the :class:`Condition` of ``meta/v1``.  Most built-in kinds have their own condition class with
additional fields, such as ``PodCondition``.  The functions accept all these classes, and ``model=`` sets the class for
new conditions.

Sources: ``pkg/api/meta/conditions.go`` in apimachinery, and "Typical status properties" in the API conventions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar, overload

import attrs

from .._suggestions import describe, with_article
from .._surroundings import wall_time
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
    """The fields that all classes of conditions, such as :class:`Condition` and ``PodCondition``, have in common."""

    @property
    def type(self) -> str | None:
        """The type of the condition, such as ``Ready``.  A list has at most one condition of each type."""

    @property
    def status(self) -> str | None:
        """``True``, ``False`` or ``Unknown``."""

    @property
    def reason(self) -> str | None:
        """The machine-readable reason for the status, in one word."""

    @property
    def message(self) -> str | None:
        """A human-readable message about the status."""

    @property
    def last_transition_time(self) -> datetime | None:
        """The time of the last change of the status."""


T = TypeVar("T", bound=ConditionLike)

ConditionStatus: TypeAlias = Literal["True", "False", "Unknown"]
"""The status of a condition, which is a string and not a boolean."""

_STATUSES: Final = ("True", "False", "Unknown")
# kubebuilder puts these patterns into every CRD with a Condition (apimachinery pkg/apis/meta/v1/types.go).
_REASON: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_DNS: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_TYPE: Final = re.compile(rf"(?:{_DNS}(?:\.{_DNS})*/)?(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_MAX_REASON: Final = 1024
_MAX_TYPE: Final = 316


def find_condition(conditions: Iterable[T], type: str) -> T | None:  # noqa: A002  # what the API calls it
    """Return the condition with this type, or None if there is no such condition.

    Args:
        conditions: Conditions of any kind, such as ``pod.status.conditions``.
        type: The type of the condition, such as ``Ready``.  The comparison is case-sensitive, as in API servers.
    """
    return next((each for each in conditions if each.type == type), None)


def is_condition_true(conditions: Iterable[ConditionLike], type: str) -> bool:  # noqa: A002
    """Return whether there is a condition with this type and the status ``True``.

    Args:
        conditions: The conditions, which can be of any condition class.
        type: The type of the condition, such as ``Ready``.
    """
    found = find_condition(conditions, type)
    return found is not None and found.status == "True"


def remove_condition(conditions: Iterable[T], type: str) -> tuple[T, ...]:  # noqa: A002
    """Return all conditions except the condition with this type.

    Args:
        conditions: The conditions, which can be of any condition class.
        type: The type of the condition, such as ``Ready``.
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
    """Return the conditions with one condition set; its transition time changes only if its status changes.

    If nothing has changed, the result equals ``conditions``, so write the status only if the result differs.
    The order of the conditions, all other conditions, and fields for which there is no argument stay unchanged.

    Args:
        conditions: The current conditions, which can also be mappings from an :class:`Unstructured` object.
        type: The type of the condition, such as ``Ready``.
        status: ``"True"``, ``"False"`` or ``"Unknown"``. A bool is converted to ``"True"`` or ``"False"``.
        reason: The machine-readable reason for the status in one word, such as ``MinimumReplicasAvailable``.
        message: A human-readable message about the status. The default is an empty message.
        observed_generation: The ``metadata.generation`` of the object. The default, None, removes the field.
        now: The transition time to use if the status changes, rounded down to a whole second.  The default, None, uses
            the current time.
        model: The class of the conditions, such as ``PodCondition``. The default is :class:`Condition`.

    Raises:
        TypeError: A condition is not an instance of ``model``, or ``observed_generation`` is given and the model has no
            such field.
        ValueError: An API server would reject the status, the type or the reason, or ``now`` has no time zone.
    """
    _check(model, type, status, reason, observed_generation, now)
    text = str(status)
    before = [_as(model, each) for each in conditions]
    old = find_condition(before, type)
    at = datetime.fromtimestamp(wall_time(), UTC) if now is None else now
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
        f"a condition must be {with_article(model)}, not {describe(condition)}; "
        f"pass model={condition.__class__.__name__} for conditions of that class"
    )


def _check(
    model: type[Any], kind: str, status: object, reason: str, observed_generation: object, now: datetime | None
) -> None:
    if str(status) not in _STATUSES or not isinstance(status, str | bool):
        raise ValueError(f"the status of condition {quoted(kind)} must be 'True', 'False' or 'Unknown', not {status!r}")
    if len(kind) > _MAX_TYPE or not _TYPE.fullmatch(kind):
        raise ValueError(f"{quoted(kind)} is not a valid condition type; write a name such as 'Ready'")
    if issubclass(model, Condition) and (len(reason) > _MAX_REASON or not _REASON.fullmatch(reason)):
        raise ValueError(
            f"{quoted(reason)} is not a valid reason for condition {kind}; write one word, such as 'Complete', "
            "and put the details in message="
        )
    if observed_generation is not None and not hasattr(model, "observed_generation"):
        raise TypeError(f"{model.__name__} has no observed_generation; omit it")
    if now is not None and now.utcoffset() is None:
        raise ValueError("now has no time zone; write datetime.now(UTC)")

"""Which events a controller looks at, and how such conditions are put together.

A predicate is a function of a notification.  Those that ask what changed let additions and deletions pass, since there
is nothing to compare; a resync changes nothing, so it passes none of them.

Source: controller-runtime ``pkg/predicate``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

from ..cache import Notification, Updated
from ..models import KubernetesObject, LabelSelector

T = TypeVar("T", bound=KubernetesObject)

Predicate: TypeAlias = Callable[[Notification[T]], bool]
"""Whether an event is to be looked at; must be quick."""


def generation_changed(event: Notification[T]) -> bool:
    """Pass updates that changed ``metadata.generation``: of the spec, and not of status and metadata.

    Kinds such as ConfigMap and Secret have no generation; all changes of these pass.
    (With controller-runtime none does.)
    """
    if not isinstance(event, Updated):
        return True
    old, new = event.old.metadata.generation, event.new.metadata.generation
    return old != new if old or new else resource_version_changed(event)


def labels_changed(event: Notification[T]) -> bool:
    """Pass updates that changed a label."""
    return not isinstance(event, Updated) or event.old.metadata.labels != event.new.metadata.labels


def annotations_changed(event: Notification[T]) -> bool:
    """Pass updates that changed an annotation."""
    return not isinstance(event, Updated) or event.old.metadata.annotations != event.new.metadata.annotations


def resource_version_changed(event: Notification[T]) -> bool:
    """Pass updates that changed anything: all but resyncs."""
    return not isinstance(event, Updated) or event.old.resource_version != event.new.resource_version


def states_match(condition: Callable[[T], bool]) -> Predicate[T]:
    """Make a predicate that passes events about objects that fulfil a condition.

    Of an update either state will do: an object that ceases to fulfil it is passed on a last time.
    (controller-runtime's ``NewPredicateFuncs`` asks about the new state alone.)

    Args:
        condition: Given a state of an object.
    """

    def matches(event: Notification[T]) -> bool:
        if isinstance(event, Updated):
            return condition(event.new) or condition(event.old)
        return condition(event.object)

    return matches


def labels_match(selector: LabelSelector | Mapping[str, str] | str) -> Callable[[Notification[T]], bool]:
    """Make a predicate that passes events about objects whose labels match, before an update or after it.

    Args:
        selector: A label selector in kubectl's grammar, or labels that must all be equal.

    Raises:
        SelectorError: It does not parse.
    """
    matcher = LabelSelector.of(selector)
    return states_match(lambda obj: matcher.matches(obj.metadata.labels))


def all_of(*predicates: Predicate[T]) -> Predicate[T]:
    """Make a predicate that passes what all of them pass."""
    return lambda event: all(predicate(event) for predicate in predicates)


def any_of(*predicates: Predicate[T]) -> Predicate[T]:
    """Make a predicate that passes what one of them passes."""
    return lambda event: any(predicate(event) for predicate in predicates)


def none_of(*predicates: Predicate[T]) -> Predicate[T]:
    """Make a predicate that passes what none of them passes; with one, its opposite."""
    return lambda event: not any(predicate(event) for predicate in predicates)

"""Predicates, which select the events that a controller processes.

Predicates such as :func:`labels_changed` test only updates.  All additions and deletions are accepted, and resyncs are
rejected.

Source: controller-runtime ``pkg/predicate``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from ..cache import Notification, Updated
from ..client._internal import LabelSelectorLike
from ..models import KubernetesObject, LabelSelector

T = TypeVar("T", bound=KubernetesObject)

Predicate: TypeAlias = Callable[[Notification[T]], bool]
"""A function that returns whether to process an event.  The function must be fast."""


def generation_changed(event: Notification[T]) -> bool:
    """Accept updates that changed the spec, but not updates that changed only the status or the metadata.

    The predicate compares ``metadata.generation``. For kinds without a generation, such as ConfigMap and Secret, all
    changes are accepted.  (In controller-runtime, they are rejected.)
    """
    if not isinstance(event, Updated):
        return True
    old, new = event.old.metadata.generation, event.new.metadata.generation
    return old != new if old or new else event.old.resource_version != event.new.resource_version


def labels_changed(event: Notification[T]) -> bool:
    """Accept updates that changed at least one label."""
    return not isinstance(event, Updated) or event.old.metadata.labels != event.new.metadata.labels


def annotations_changed(event: Notification[T]) -> bool:
    """Accept updates that changed at least one annotation."""
    return not isinstance(event, Updated) or event.old.metadata.annotations != event.new.metadata.annotations


def states_match(condition: Callable[[T], bool]) -> Predicate[T]:
    """Return a predicate that accepts events of objects that satisfy a condition.

    An update is accepted if its old or its new state satisfies the condition. (In controller-runtime,
    ``NewPredicateFuncs`` tests only the new state.)

    Args:
        condition: A function that is called with a state of an object, and returns whether it satisfies the condition.
    """

    def matches(event: Notification[T]) -> bool:
        if isinstance(event, Updated):
            return condition(event.new) or condition(event.old)
        return condition(event.object)

    return matches


def labels_match(label_selector: LabelSelectorLike) -> Callable[[Notification[T]], bool]:
    """Return a predicate that accepts events of objects with matching labels, before or after an update.

    Args:
        label_selector: A label selector in kubectl's syntax, or a mapping of labels that must all be equal.

    Raises:
        SelectorError: The selector is not valid.
    """
    matcher = LabelSelector.of(label_selector)
    return states_match(lambda obj: matcher.matches(obj.metadata.labels))

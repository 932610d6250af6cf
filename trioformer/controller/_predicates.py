"""Predicates select the events that a controller processes.

The predicates for changes accept additions and deletions, which have only one state, and reject resyncs.

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
"""Returns whether to process an event.  It must be quick."""


def generation_changed(event: Notification[T]) -> bool:
    """Accept updates that changed ``metadata.generation``: changes of the spec, but not of the status or metadata.

    For kinds without a generation, such as ConfigMap and Secret, all changes are accepted.
    (controller-runtime rejects them.)
    """
    if not isinstance(event, Updated):
        return True
    old, new = event.old.metadata.generation, event.new.metadata.generation
    return old != new if old or new else event.old.resource_version != event.new.resource_version


def labels_changed(event: Notification[T]) -> bool:
    """Accept updates that changed a label."""
    return not isinstance(event, Updated) or event.old.metadata.labels != event.new.metadata.labels


def annotations_changed(event: Notification[T]) -> bool:
    """Accept updates that changed an annotation."""
    return not isinstance(event, Updated) or event.old.metadata.annotations != event.new.metadata.annotations


def states_match(condition: Callable[[T], bool]) -> Predicate[T]:
    """Return a predicate that accepts events of objects that meet a condition.

    An update is accepted if its old or its new state meets the condition.
    (controller-runtime's ``NewPredicateFuncs`` tests only the new state.)

    Args:
        condition: Called with a state of an object.
    """

    def matches(event: Notification[T]) -> bool:
        if isinstance(event, Updated):
            return condition(event.new) or condition(event.old)
        return condition(event.object)

    return matches


def labels_match(label_selector: LabelSelectorLike) -> Callable[[Notification[T]], bool]:
    """Return a predicate that accepts events of objects whose labels match, before or after an update.

    Args:
        label_selector: A label selector in kubectl's grammar, or labels that must all be equal.

    Raises:
        SelectorError: The selector is invalid.
    """
    matcher = LabelSelector.of(label_selector)
    return states_match(lambda obj: matcher.matches(obj.metadata.labels))

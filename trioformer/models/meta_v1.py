"""meta/v1.  GENERATED from _schema.json, do not edit: nox -s models."""

from __future__ import annotations

from collections.abc import Mapping

from ._classes import frozen_model
from ._lazy import Model
from ._values import EMPTY_MAP, Time

__all__ = [
    "Condition",
    "DeleteOptions",
    "FieldSelectorRequirement",
    "GroupResource",
    "LabelSelector",
    "LabelSelectorRequirement",
    "Preconditions",
]


@frozen_model(kw_only=True)
class Condition(Model):
    """meta/v1 Condition."""

    last_transition_time: Time | None = None
    message: str = ""
    observed_generation: int | None = None
    reason: str = ""
    status: str = ""
    type: str = ""


@frozen_model(kw_only=True)
class Preconditions(Model):
    """meta/v1 Preconditions."""

    resource_version: str | None = None
    uid: str | None = None


@frozen_model(kw_only=True)
class DeleteOptions(Model):
    """meta/v1 DeleteOptions."""

    api_version: str | None = None
    dry_run: tuple[str, ...] = ()
    grace_period_seconds: int | None = None
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None
    kind: str | None = None
    orphan_dependents: bool | None = None
    preconditions: Preconditions | None = None
    propagation_policy: str | None = None


@frozen_model(kw_only=True)
class FieldSelectorRequirement(Model):
    """meta/v1 FieldSelectorRequirement."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class GroupResource(Model):
    """meta/v1 GroupResource."""

    group: str = ""
    resource: str = ""


@frozen_model(kw_only=True)
class LabelSelectorRequirement(Model):
    """meta/v1 LabelSelectorRequirement."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


@frozen_model(kw_only=True)
class LabelSelector(Model):
    """meta/v1 LabelSelector."""

    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
    match_labels: Mapping[str, str] = EMPTY_MAP

"""Label and field selectors: parse, match, render.

A selector is a conjunction: every requirement must hold, and one without requirements matches everything.
Both kinds are parsed once into immutable values; matching an object parses nothing but the object's own label under
``>`` and ``<``.
The API's own ``LabelSelector`` (``matchLabels`` and ``matchExpressions``) is a model; what stands here is the text form
that travels in the ``labelSelector`` and ``fieldSelector`` parameters of a list or watch.

The grammars are those of apimachinery's ``pkg/labels/selector.go`` and ``pkg/fields/selector.go``.

- ``_errors.py``: what the errors of both grammars look like
- ``_label_requirement.py``: one condition on one label, and what keys and values may be
- ``_label_matcher.py``: label selectors and their parser
- ``_field_matcher.py``: field selectors
- ``_selectable_fields.py``: which fields a kind can be selected by
"""

from __future__ import annotations

from ._field_selector import FieldOperator as FieldOperator
from ._field_selector import FieldRequirement as FieldRequirement
from ._field_selector import FieldSelector as FieldSelector
from ._label_requirement import LabelOperator as LabelOperator
from ._label_requirement import LabelRequirement as LabelRequirement
from ._label_selector import LabelSelector as LabelSelector
from ._selectable_fields import SelectableFields as SelectableFields

__all__ = [
    "FieldOperator",
    "FieldRequirement",
    "FieldSelector",
    "LabelOperator",
    "LabelRequirement",
    "LabelSelector",
    "SelectableFields",
]

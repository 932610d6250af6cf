"""Label and field selectors: parsing, matching and formatting.

An object matches a selector if it meets every requirement, so a selector without requirements matches all objects.
Selectors are parsed once into immutable values, so matching an object is fast.
The classes in this package represent the text in the ``labelSelector`` and ``fieldSelector`` parameters of lists and
watches.  The ``LabelSelector`` in API objects (``matchLabels`` and ``matchExpressions``) is a generated model.

The grammars follow ``pkg/labels/selector.go`` and ``pkg/fields/selector.go`` in apimachinery.

- ``_errors.py``: error messages for both grammars
- ``_label_requirement.py``: one requirement of a label selector, and the checks of keys and values
- ``_label_selector.py``: label selectors and their parser
- ``_field_selector.py``: field selectors and their parser
- ``_selectable_fields.py``: the fields that a field selector can use for each kind
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

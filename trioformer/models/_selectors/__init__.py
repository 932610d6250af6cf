"""Label and field selectors: parse, match, format.

A selector is a conjunction: an object must meet every requirement, and matches a selector without requirements.
Selectors are parsed once into immutable values; to match an object, only a label with ``>`` or ``<`` is parsed.
The ``LabelSelector`` in API objects (``matchLabels`` and ``matchExpressions``) is a generated model; the classes here
are the text form in the ``labelSelector`` and ``fieldSelector`` parameters of lists and watches.

The grammars follow apimachinery's ``pkg/labels/selector.go`` and ``pkg/fields/selector.go``.

- ``_errors.py``: the format of errors of both grammars
- ``_label_requirement.py``: one requirement on one label, and the checks of keys and values
- ``_label_selector.py``: label selectors and their parser
- ``_field_selector.py``: field selectors and their parser
- ``_selectable_fields.py``: the fields that select objects of a kind
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

"""What other packages of trioformer need of this one, and users do not."""

from __future__ import annotations

from ._storage._field_types import DEDUCED as DEDUCED
from ._storage._field_types import MISSING as MISSING
from ._storage._field_types import FieldType as FieldType
from ._storage._field_types import ListType as ListType
from ._storage._field_types import builtin_type as builtin_type
from ._storage._field_types import named_type as named_type

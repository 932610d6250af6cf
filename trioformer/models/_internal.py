"""Private names that other trioformer packages import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._util import names_on_demand as _names_on_demand
from ._decodable import find_undecodable as find_undecodable
from ._decodable import locate_undecodable as locate_undecodable
from ._hints import UNIONS as UNIONS
from ._lazy import encode_as as encode_as
from ._merge_patch import find_model as find_model
from ._meta import Head as Head
from ._meta import encode_for_server as encode_for_server
from ._meta import encode_request as encode_request
from ._meta import make_object as make_object
from ._meta import scan_head as scan_head
from ._meta import scan_whole as scan_whole
from ._meta import scan_without_managed_fields as scan_without_managed_fields
from ._names import guess_plural as guess_plural
from ._names import is_label as is_label
from ._names import is_path_segment as is_path_segment
from ._names import is_subdomain as is_subdomain
from ._names import is_version as is_version
from ._names import kind_problem as kind_problem
from ._partial import metadata_only as metadata_only
from ._serde import Raw as Raw
from ._serde import decode as decode
from ._serde import dumps as dumps
from ._serde import level_decoder as level_decoder
from ._serde import list_items as list_items
from ._serde import plain as plain
from ._values import MAX_LEVELS as MAX_LEVELS
from ._values import TOO_DEEP as TOO_DEEP
from ._values import camel_case as camel_case

if TYPE_CHECKING:
    from ._shapes import Shape as Shape
    from ._shapes import builtin_shape as builtin_shape
    from ._shapes import metadata_shape as metadata_shape
    from ._shapes import with_amounts as with_amounts
else:  # most programs never need them
    _SHAPES = ("Shape", "builtin_shape", "metadata_shape", "with_amounts")
    __getattr__, _ = _names_on_demand(globals(), dict.fromkeys(_SHAPES, "_shapes"))
from ._kinds import builtin_resources as builtin_resources
from ._selectors._label_requirement import LabelOperator as LabelOperator
from ._selectors._label_requirement import LabelRequirement as LabelRequirement

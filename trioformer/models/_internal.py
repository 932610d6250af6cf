"""Private names that other trioformer packages import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._util import names_on_demand as _names_on_demand
from ._heads import Head as Head
from ._heads import scan_head as scan_head
from ._heads import scan_whole as scan_whole
from ._heads import scan_without_managed_fields as scan_without_managed_fields
from ._hints import UNIONS as UNIONS
from ._kinds import builtin_kind as builtin_kind
from ._merge_patch import find_model as find_model
from ._meta import bytes_of as bytes_of
from ._meta import detached as detached
from ._meta import encode_for_server as encode_for_server
from ._meta import encode_request as encode_request
from ._meta import make_object as make_object
from ._meta import size_of as size_of
from ._names import guess_plural as guess_plural
from ._names import is_label as is_label
from ._names import is_path_segment as is_path_segment
from ._names import is_subdomain as is_subdomain
from ._names import is_version as is_version
from ._names import kind_problem as kind_problem
from ._partial import metadata_only as metadata_only
from ._plain import encode_as as encode_as
from ._plain import newer_field as newer_field
from ._protobuf._heads import MAGIC as MAGIC
from ._protobuf._heads import envelope_of as envelope_of
from ._protobuf._heads import find_key as find_key
from ._protobuf._heads import open_envelope as open_envelope
from ._protobuf._heads import parts_of as parts_of
from ._protobuf._heads import scan_message as scan_message
from ._protobuf._heads import status_of as status_of
from ._protobuf._wire import Message as Message
from ._protobuf._wire import read_level as read_level
from ._protobuf._wire import tagged as tagged
from ._protobuf._wire import varint as varint
from ._serde import FAULTS as FAULTS
from ._serde import Raw as Raw
from ._serde import canonical as canonical
from ._serde import decode as decode
from ._serde import dumps as dumps
from ._serde import level_decoder as level_decoder
from ._serde import list_items as list_items
from ._serde import loads as loads
from ._serde import map_items as map_items
from ._serde import plain as plain
from ._serde import plain_decoder as plain_decoder
from ._values import EMPTY_MAP as EMPTY_MAP
from ._values import MAX_LEVELS as MAX_LEVELS
from ._values import TOO_DEEP as TOO_DEEP
from ._values import camel_case as camel_case

if TYPE_CHECKING:
    from ._amounts import with_amounts as with_amounts
    from ._decodable import find_undecodable as find_undecodable
    from ._decodable import locate_undecodable as locate_undecodable
    from ._protobuf._fields import type_of_class as type_of_class
    from ._protobuf._tables import WireType as WireType
    from ._protobuf._transcode import event_of as event_of
    from ._protobuf._transcode import find_wire_type as find_wire_type
    from ._protobuf._transcode import item_of as item_of
    from ._protobuf._transcode import list_of as list_of
    from ._protobuf._transcode import message_to_json as message_to_json
    from ._protobuf._transcode import object_of as object_of
else:  # most programs never need them
    _TRANSCODE = ("event_of", "find_wire_type", "item_of", "list_of", "message_to_json", "object_of")
    _DECODABLE = ("find_undecodable", "locate_undecodable")
    _PLACES = {
        "WireType": "_protobuf._tables",
        "with_amounts": "_amounts",
        "type_of_class": "_protobuf._fields",
        **dict.fromkeys(_DECODABLE, "_decodable"),
        **dict.fromkeys(_TRANSCODE, "_protobuf._transcode"),
    }
    __getattr__, _ = _names_on_demand(globals(), _PLACES)
from ._kinds import builtin_resources as builtin_resources
from ._selectors._label_requirement import LabelOperator as LabelOperator
from ._selectors._label_requirement import LabelRequirement as LabelRequirement

"""Names that other packages of trioformer import; not part of the public API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._util import names_on_demand as _names_on_demand
from ._api import check_api as check_api
from ._api import located as located
from ._api import obtain_credential as obtain_credential
from ._api import plugin_of as plugin_of
from ._api import pods_beside as pods_beside
from ._api import without_retries as without_retries
from ._api_requests import check_kind as check_kind
from ._api_resources import ApiResources as ApiResources
from ._client import default_field_manager as default_field_manager
from ._client import open_separate_client as open_separate_client
from ._client import simulated_cluster as simulated_cluster
from ._object_ref import reference_to as reference_to
from ._options import FieldSelectorLike as FieldSelectorLike
from ._options import LabelSelectorLike as LabelSelectorLike
from ._options import PropagationPolicy as PropagationPolicy
from ._writes import Write as Write
from ._writes import WrittenObject as WrittenObject
from ._writes import confirms_write as confirms_write
from ._writes import write_observer as write_observer
from ._writes import written_caches as written_caches
from .bodies._lists import PAGE_SIZE as PAGE_SIZE
from .bodies._protobuf import PROTOBUF as PROTOBUF
from .bodies._responses import REASONS as REASONS
from .bodies._responses import check as check
from .bodies._responses import streamed_status_error as streamed_status_error
from .bodies._undecodable import UndecodableHandler as UndecodableHandler
from .bodies._wire_format import JSON as JSON

if TYPE_CHECKING:
    from ._changes import ReplacedError as ReplacedError
    from ._changes import check_same as check_same
    from ._changes import read_same as read_same
    from ._changes import write_same as write_same
    from ._raw import RawLines as RawLines
else:  # few programs need them
    _CHANGES = dict.fromkeys(("ReplacedError", "check_same", "read_same", "write_same"), "_changes")
    __getattr__, _ = _names_on_demand(globals(), {"RawLines": "_raw", **_CHANGES})

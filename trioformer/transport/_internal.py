"""What other packages of trioformer need of this one, and users do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._util import names_on_demand as _names_on_demand
from ._byte_stream import ByteStream as ByteStream
from ._byte_stream import encoding_of as encoding_of
from ._connection import Transport as Transport
from ._describe import excerpt as excerpt
from ._describe import html_title as html_title
from ._frames import FrameSplitter as FrameSplitter
from ._frames import LargeFrame as LargeFrame
from ._frames import Scan as Scan
from ._frames import decode_watch_frame as decode_watch_frame
from ._grammar import GRAMMAR_SLICE as GRAMMAR_SLICE
from ._grammar import Grammar as Grammar
from ._limits import LimitPassedError as LimitPassedError
from ._limits import limit_exceeded as limit_exceeded
from ._list_head import ListHead as ListHead
from ._list_splitter import BLOCK as BLOCK
from ._list_splitter import LargeItem as LargeItem
from ._list_splitter import ListSplitter as ListSplitter
from ._open import default_user_agent as default_user_agent
from ._open import open_transport as open_transport
from ._response import Response as Response
from ._response import request_id_in as request_id_in
from ._warnings import WarningLog as WarningLog

if TYPE_CHECKING:
    from ._httpcore_errors import to_httpx as to_httpx
    from ._upgrade import upgrade as upgrade
else:
    # One imports httpcore, which most programs need only when they send the first request; few need the other.
    __getattr__, _ = _names_on_demand(globals(), {"to_httpx": "_httpcore_errors", "upgrade": "_upgrade"})

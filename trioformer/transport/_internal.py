"""Names for the other packages of trioformer, which are not part of the public API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._util import names_on_demand as _names_on_demand
from ._connection import Transport as Transport
from ._connection import messages_of as messages_of
from ._failures import CUT_OFF as CUT_OFF
from ._failures import NO_RESPONSE as NO_RESPONSE
from ._limits import DEFAULT_LIMITS as DEFAULT_LIMITS
from ._limits import limit_error as limit_error
from ._open import default_user_agent as default_user_agent
from ._open import open_transport as open_transport
from ._options import DEFAULT_OPTIONS as DEFAULT_OPTIONS
from ._options import ClientOptions as ClientOptions
from ._warnings import WarningLog as WarningLog
from .http._body import ByteStream as ByteStream
from .http._messages import SWITCHED as SWITCHED
from .http._messages import Response as Response
from .http._messages import request_id_in as request_id_in

if TYPE_CHECKING:
    from ._raw_requests import open_http_client as open_http_client
else:  # it imports httpx
    __getattr__, _ = _names_on_demand(globals(), {"open_http_client": "_raw_requests"})

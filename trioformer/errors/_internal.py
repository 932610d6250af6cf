"""Names for other packages of trioformer, not for users."""

from __future__ import annotations

from ._status import UNEXPECTED_SERVER_RESPONSE as UNEXPECTED_SERVER_RESPONSE
from ._status import details_in as details_in

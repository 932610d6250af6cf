"""What other packages of trioformer need of this one, and users do not."""

from __future__ import annotations

from ._status import UNEXPECTED_SERVER_RESPONSE as UNEXPECTED_SERVER_RESPONSE
from ._status import details_in as details_in

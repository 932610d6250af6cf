"""Names for the other packages of trioformer, which are not part of the public API."""

from __future__ import annotations

from ._checks import DNS_LABEL as DNS_LABEL
from ._checks import has_host as has_host
from ._config import InteractiveMode as InteractiveMode
from ._files import StreamError as StreamError

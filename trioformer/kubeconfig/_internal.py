"""Names for the other packages of trioformer, which are not part of the public API."""

from __future__ import annotations

from ._config import InteractiveMode as InteractiveMode
from ._files import StreamError as StreamError

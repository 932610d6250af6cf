"""Names for other packages of trioformer, not for users."""

from __future__ import annotations

from ._config import InteractiveMode as InteractiveMode
from ._files import StreamError as StreamError

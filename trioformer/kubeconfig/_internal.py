"""What other packages of trioformer need of this one, and users do not."""

from __future__ import annotations

from ._files import StreamError as StreamError

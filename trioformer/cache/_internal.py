"""What other packages of trioformer need of this one, and users do not."""

from __future__ import annotations

from .informer._shared_informer import add_paused_handler as add_paused_handler

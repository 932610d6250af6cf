"""A token, and the reader's controllers."""

from __future__ import annotations

from trioformer.controller import Controller
from trioformer.manager import ManagerContext


async def start_nothing(context: ManagerContext) -> Controller | None:
    return None


token = "from-a-secret"
controllers = {"nothing": start_nothing}

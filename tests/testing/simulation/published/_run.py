"""What the operators of this directory have in common."""

from __future__ import annotations

import trio

from trioformer import SharedInformerFactory
from trioformer.controller import Controller


async def run_controller(factory: SharedInformerFactory, controller: Controller) -> None:
    """Fill the caches and run a controller."""
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        await controller.run()

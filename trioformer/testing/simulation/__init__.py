"""Simulations of operators: a thousand stories with faults, on virtual time, for one test.

::

    from trioformer.testing.simulation import World, drawn, simulate, step

    class Websites:
        kinds = (Website,)

        @step
        def create(self, world: World, replicas: int = drawn(0, 5)) -> None:
            metadata = ObjectMeta(name="one", namespace="default")
            world.create(Website(metadata=metadata, spec=WebsiteSpec(replicas=replicas)))

    def test_stories() -> None:
        simulate(serve, Websites, replicas=2).check()
"""

from __future__ import annotations

from ._report import Failure as Failure
from ._report import Report as Report
from ._report import StoryFailed as StoryFailed
from ._scenario import drawn as drawn
from ._scenario import step as step
from ._simulate import simulate as simulate
from ._story import Fault as Fault
from ._story import Schedule as Schedule
from ._story import Step as Step
from ._story import Story as Story
from ._world import World as World

__all__ = [
    "Failure",
    "Fault",
    "Report",
    "Schedule",
    "Step",
    "Story",
    "StoryFailed",
    "World",
    "drawn",
    "simulate",
    "step",
]

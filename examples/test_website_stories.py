"""Simulate an operator: stories of its user, with faults, on virtual time.

A story that fails is shrunk, and its report ends with a test that repeats it. Run the
simulation with ``pytest examples``.
"""

from __future__ import annotations

from website_operator import Website, WebsiteSpec, serve

from trioformer import ObjectMeta
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import Secret
from trioformer.testing.simulation import (
    Fault,
    Schedule,
    Step,
    Story,
    World,
    drawn,
    simulate,
    step,
)


class Websites:
    """A user who creates a Website, changes it and its Secret, and deletes it."""

    kinds = (Website,)

    def start(self, world: World) -> None:
        metadata = ObjectMeta(name="token", namespace="default")
        world.create(Secret(metadata=metadata, string_data={"token": "first"}))

    @step
    def create(
        self,
        world: World,
        replicas: int = drawn(0, 3),
        secret: str = drawn("", "token"),
    ) -> None:
        metadata = ObjectMeta(name="blog", namespace="default")
        spec = WebsiteSpec(page="Hello", replicas=replicas, secret=secret)
        world.create(Website(metadata=metadata, spec=spec))

    @step
    def delete(self, world: World) -> None:
        world.delete(Website, "blog")

    @step
    def create_again(self, world: World, replicas: int = drawn(0, 3)) -> None:
        self.create(world, replicas, "token")

    @step
    def scale(self, world: World, replicas: int = drawn(0, 3)) -> None:
        world.patch(Website, "blog", {"spec": {"replicas": replicas}})

    @step
    def rotate(self, world: World, token: str = drawn("second", "third")) -> None:
        world.patch(Secret, "token", {"stringData": {"token": token}})

    def always(self, world: World) -> None:
        """Called after each write."""
        assert len(world.list(Deployment)) <= 1

    def eventually(self, world: World) -> None:
        """Called when the operator has settled."""
        for website in world.list(Website):
            deployment = world.get(Deployment, website.name)
            assert (deployment.status.ready_replicas or 0) == website.spec.replicas


def test_no_story_fails() -> None:
    simulate(serve, Websites, replicas=2, stories=20).check()


def test_a_replica_that_is_killed_before_its_first_status_is_replaced() -> None:
    story = Story(
        replicas=2,
        schedule=Schedule(policy="late", number=1),
        steps=(Step(name="create", arguments={"replicas": 2, "secret": ""}),),
        faults=(Fault(kind="kill", at="patch websites/status", lasts=20.0),),
    )
    simulate(serve, Websites, story=story).check()

"""Step 9: tell stories with faults to the controller of step 8, on virtual time."""

from __future__ import annotations

import trio
from step_8_stop_cleanly import App, AppSpec, serve

from trioformer import Client, ObjectMeta
from trioformer.manager import HTTPOptions
from trioformer.testing.simulation import World, drawn, simulate, step

LABELS = {"app": "web"}
POD_SPEC = {"containers": [{"name": "web", "image": "web:1"}]}
WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": POD_SPEC},
    },
}


class Apps:
    """A user who creates an App, and changes it."""

    kinds = (App,)

    def start(self, world: World) -> None:
        world.create(WEB)  # a pod of the App

    @step
    def create(self, world: World, min_ready: int = drawn(1, 3)) -> None:
        metadata = ObjectMeta(name="web", namespace="default")
        world.create(App(metadata=metadata, spec=AppSpec(min_ready=min_ready)))

    @step
    def change(self, world: World, min_ready: int = drawn(1, 3)) -> None:
        world.patch(App, "web", {"spec": {"minReady": min_ready}})


async def operator(client: Client) -> None:
    await serve(client, HTTPOptions("127.0.0.1:8080"), trio.Event())


def test_no_story_fails() -> None:
    simulate(operator, Apps, stories=50).check()

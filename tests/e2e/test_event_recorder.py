"""Events as a real kube-apiserver takes and refuses them, and as kubectl shows them."""

from __future__ import annotations

from pathlib import Path

import trio

from trioformer.client import open_client
from trioformer.events import EventRecorder, EventRecorderOptions
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Namespace, Node, ObjectReference, Pod
from trioformer.models.events_v1 import Event
from trioformer.testing import ControlPlane

NAMESPACE = "event-recorder"
COMBINED = "(combined from similar events): "


async def test_a_real_server_takes_what_the_recorder_writes_and_kubectl_describes_it(
    control_plane: ControlPlane, assets: Path
) -> None:
    async with open_client(kubeconfig=control_plane.kubeconfig) as client:
        for name in (NAMESPACE, "doomed"):
            await client.api(Namespace).create(Namespace(metadata=ObjectMeta(name=name)))
        await client.api(Namespace).delete("doomed")
        web = await client.api(ConfigMap).create(ConfigMap(metadata=ObjectMeta(name="web", namespace=NAMESPACE)))
        recorder = EventRecorder(client, controller="example.com/e2e", options=EventRecorderOptions(flush_period=30))
        api = client.api(Event, namespace=NAMESPACE)
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                await nursery.start(recorder.run)
                recorder.event(web, reason="Counted", action="Testing", note="the same")
                async with api.watch() as changes:
                    await anext(aiter(changes))
                    for _ in range(3):
                        recorder.event(web, reason="Counted", action="Testing", note="the same")
                    await anext(aiter(changes))  # the second is written while it goes on
                for number in range(12):
                    recorder.event(web, type="Warning", reason="Similar", action="Testing", note=f"number {number}")
                recorder.event(web, reason="r" * 128, action="a" * 128, note="é" * 600)
                part = ObjectReference(kind="ConfigMap", name="web", namespace=NAMESPACE, field_path="data.a")
                recorder.event(part, reason="Part", action="Testing", note="a part", related=web)
                recorder.event(
                    Node(metadata=ObjectMeta(name="system:n")), reason="Odd", action="Testing", note="a node"
                )
                recorder.event(
                    Pod(metadata=ObjectMeta(name="p", namespace="doomed")),
                    reason="Late",
                    action="Testing",
                    note="refused",
                )
                nursery.cancel_scope.cancel()
        figures = recorder.statistics()
        assert (figures.recorded, figures.written, figures.dropped) == (20, 19, 1)
        events = {(event.reason, event.note): event.series and event.series.count for event in await api.list()}
        assert events[("Counted", "the same")] == 4
        assert events[("Similar", f"{COMBINED}number 9")] == 3
        assert len(events) == 1 + 10 + 1 + 1
        nodes = await client.api(Event, namespace="default").list(field_selector="regarding.name=system:n")
        assert len(nodes) == 1
        described = await trio.run_process(
            [
                assets / "kubectl",
                "--kubeconfig",
                control_plane.kubeconfig,
                "-n",
                NAMESPACE,
                "describe",
                "configmap/web",
            ],
            capture_stdout=True,
        )
        assert b"(x4 over " in described.stdout
        assert b"example.com/e2e" in described.stdout

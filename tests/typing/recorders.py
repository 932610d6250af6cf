"""What type checkers infer for event recorders; checked by mypy and pyright, never run."""

from __future__ import annotations

from typing import assert_type

import trio

from trioformer import Client
from trioformer.events import EventRecorder, EventRecorderOptions
from trioformer.events._options import EventRecorderStatistics
from trioformer.models.core_v1 import ObjectReference, Pod


async def events(client: Client, pod: Pod, nursery: trio.Nursery) -> None:
    recorder = EventRecorder(client, controller="x", options=EventRecorderOptions(queue_size=10))
    await nursery.start(recorder.run)
    recorder.event(pod, reason="R", action="A", note="n")
    recorder.event(ObjectReference(kind="Pod", name="p"), type="Warning", reason="R", action="A", note="n", related=pod)
    recorder.event(pod, type="Error", reason="R", action="A", note="n")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    recorder.event("pod", reason="R", action="A", note="n")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(recorder.statistics(), EventRecorderStatistics)
    assert_type(recorder.controller, str)
    assert_type(recorder.options, EventRecorderOptions)

"""The types of watches and waits, checked by mypy and pyright; never executed."""

from __future__ import annotations

from typing import assert_type

from trioformer import Api, has_condition, resuming_watch, wait_for
from trioformer.models.core_v1 import Pod
from trioformer.watchtools import deleted
from trioformer.watchtools._resuming_watch import ResumingWatch


async def waiting(pods: Api[Pod]) -> None:
    assert_type(await wait_for(pods, "web-0", has_condition("Ready")), Pod)
    assert_type(await wait_for(pods, "web-0", lambda pod: pod.spec.node_name is not None), Pod)
    await wait_for(pods, "web-0", deleted())


async def resuming(pods: Api[Pod]) -> None:
    async with resuming_watch(pods, resource_version="1") as events:
        assert_type(events, ResumingWatch[Pod])
        async for event in events:
            assert_type(event.object, Pod)

"""Checks of a list and of a watch in which one object, between two good ones, cannot be decoded."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from trioformer.client import Api, Undecodable
from trioformer.errors import DecodeError, UnexpectedResponseError

Reported = list[Undecodable]


async def check_list(api: AbstractAsyncContextManager[Api[Any]], raw: bytes, key: str, text: str) -> Reported:
    """List twice, with and without a handler; return what the handler received."""
    reported: Reported = []
    async with api as pods:
        found = await pods.list(on_undecodable=reported.append)
        assert [pod.name for pod in found] == ["before", "after"]
        assert found.resource_version == "7"
        with pytest.raises(UnexpectedResponseError, match=text):
            await pods.list()
    assert [(one.kind, one.key, one.raw, one.event_type) for one in reported] == [("Pod", key, raw, "")]
    assert type(reported[0].error) is DecodeError
    assert str(reported[0].error).startswith("list pods in namespace shop: ")
    return reported


async def check_watch(api: AbstractAsyncContextManager[Api[Any]], key: str, text: str) -> Reported:
    """Watch twice, with and without a handler; return what the handler received."""
    reported: Reported = []
    async with api as pods:
        async with pods.watch(on_undecodable=reported.append) as events:
            assert [found.object.name async for found in events] == ["before", "after"]
        async with pods.watch() as events:
            assert [found.object.name for found in await events.receive_batch()] == ["before"]
            for _ in range(2):
                with pytest.raises(DecodeError, match=text):
                    await events.receive_batch()
    assert [(one.kind, one.key, one.event_type) for one in reported] == [("Pod", key, "MODIFIED")]
    assert str(reported[0].error).startswith("watch pods in namespace shop: ")
    return reported

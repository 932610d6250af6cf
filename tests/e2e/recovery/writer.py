"""The writer, which changes ConfigMaps without the proxies, so also while informers are cut off."""

from __future__ import annotations

import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

import attrs
import trio

from trioformer import ConnectionFailedError, StatusError
from trioformer.client import Api
from trioformer.models import ObjectMeta, key_of
from trioformer.models.core_v1 import ConfigMap

T = TypeVar("T")

NAMES = [f"c{number}" for number in range(20)]
MARK = "mark"
PERIOD = 0.05
"""Seconds between two changes."""
WRITE_DEADLINE = 1.0
"""Seconds that one request may take, which a server that is suspended never responds to."""


@attrs.define(eq=False)
class Writer:
    """Creates, updates and deletes ConfigMaps of one namespace, whether the server is there or not."""

    api: Api[ConfigMap]
    rng: random.Random
    written: int = 0
    """How many changes have succeeded."""
    _may_write: trio.Lock = attrs.field(factory=trio.Lock)
    _numbers: itertools.count[int] = attrs.field(factory=itertools.count)

    @property
    def namespace(self) -> str:
        assert self.api.namespace is not None
        return self.api.namespace

    async def fill(self) -> None:
        """Create some of the ConfigMaps."""
        for name in (MARK, *NAMES[::2]):
            await self.api.create(_config_map(name))

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            async with self._may_write:
                # What is to be created may be there already, and what is to be changed or deleted may not.
                with trio.move_on_after(WRITE_DEADLINE), suppress(ConnectionFailedError, StatusError):
                    await self._write(self.rng.choice(NAMES))
                    self.written += 1
            await trio.sleep(PERIOD)

    async def _write(self, name: str) -> None:
        way = self.rng.choice(["create", "update", "update", "delete"])
        if way == "create":
            await self.api.create(_config_map(name))
        elif way == "update":
            await self._update(name)
        else:
            await self.api.delete(name)

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """Change nothing during the block."""
        async with self._may_write:
            yield

    async def mark(self) -> None:
        """Change one object, now that the server is there, so that whoever knows of it has received something since."""
        await self._repeat(lambda: self._update(MARK))

    async def list(self) -> dict[str, str]:
        """Return the resourceVersions by key, of a fresh list."""
        listed = await self._repeat(self.api.list)
        return {key_of(each): each.resource_version for each in listed}

    def _update(self, name: str) -> Awaitable[ConfigMap]:
        return self.api.patch(name, {"data": {"changed": str(next(self._numbers))}})

    @staticmethod
    async def _repeat(request: Callable[[], Awaitable[T]]) -> T:
        """Send a request until it succeeds: the first may be sent to a connection of a server that was killed."""
        while True:
            with trio.move_on_after(WRITE_DEADLINE), suppress(ConnectionFailedError, StatusError):
                return await request()
            await trio.sleep(PERIOD)


def _config_map(name: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data={"created": "yes"})

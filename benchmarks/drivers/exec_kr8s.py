"""kr8s: commands in a pod."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import executing
import kr8s.asyncio
from kr8s.asyncio.objects import Pod


class Counter(io.RawIOBase):
    """Counts what is written to it."""

    count = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.count += len(data)
        return len(data)


async def main() -> None:
    options, measured, output = executing.options(), executing.Measurements(), Counter()
    api = await kr8s.asyncio.api(kubeconfig=options.kubeconfig)
    pod = await Pod.get(executing.POD, namespace=executing.NAMESPACE, api=api)
    await pod.exec(executing.SHORT)
    measured.begin()
    for _ in range(options.times):
        await pod.exec(executing.SHORT)
    measured.end("short")
    measured.begin()
    await pod.exec(executing.long(options.size), stdout=output, capture_output=False)
    measured.end("long")
    measured.finish(options.size, output.count)


if __name__ == "__main__":
    asyncio.run(main())

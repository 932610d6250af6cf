"""trioformer: commands in a pod."""

from __future__ import annotations

import executing
import trio

from trioformer import open_client
from trioformer.models.core_v1 import Pod
from trioformer.pods import exec_in_pod, run_in_pod


async def main() -> None:
    options, measured, received = executing.options(), executing.Measurements(), 0
    async with open_client(kubeconfig=options.kubeconfig) as client:
        pods = client.api(Pod, namespace=executing.NAMESPACE)
        await run_in_pod(pods, executing.POD, executing.SHORT)
        measured.begin()
        for _ in range(options.times):
            await run_in_pod(pods, executing.POD, executing.SHORT)
        measured.end("short")
        measured.begin()
        async with exec_in_pod(pods, executing.POD, executing.long(options.size)) as process:
            async for data in process.stdout:
                received += len(data)
        measured.end("long")
    measured.finish(options.size, received)


if __name__ == "__main__":
    trio.run(main)

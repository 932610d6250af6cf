"""kubernetes-asyncio: commands in a pod."""

from __future__ import annotations

import asyncio
from functools import partial

import executing
from kubernetes_asyncio import client, config
from kubernetes_asyncio.stream import WsApiClient

STDOUT = 1


async def main() -> None:
    options, measured, received = executing.options(), executing.Measurements(), 0
    await config.load_kube_config(options.kubeconfig)
    async with WsApiClient() as opened:
        connect = client.CoreV1Api(opened).connect_get_namespaced_pod_exec
        execute = partial(connect, executing.POD, executing.NAMESPACE, stdout=True, stderr=True)
        await execute(command=executing.SHORT)
        measured.begin()
        for _ in range(options.times):
            await execute(command=executing.SHORT)
        measured.end("short")
        measured.begin()
        async with await execute(command=executing.long(options.size), _preload_content=False) as messages:
            async for message in messages:
                if message.data[0] == STDOUT:
                    received += len(message.data) - 1
        measured.end("long")
    measured.finish(options.size, received)


if __name__ == "__main__":
    asyncio.run(main())

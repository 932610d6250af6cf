"""Pods that log, a Job's manifest, and a pod that is ready as soon as it is applied."""

from __future__ import annotations

import trio

from trioformer import Client
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer
from trioformer.watchtools import created, wait_for

FILES = {
    "job.yaml": """\
apiVersion: v1
kind: Pod
metadata: {name: migrate, namespace: default}
spec:
  restartPolicy: Never
  containers:
  - {name: migrate, image: "migrate:1"}
"""
}


async def set_up(client: Client, api_server: APIServer, nursery: trio.Nursery) -> dict[str, object]:
    for name in ("web-0", "web-1", "db-0"):
        app = name.partition("-")[0]
        status = {"name": app, "restartCount": 1, "ready": True, "state": {"running": {}}}
        status["lastState"] = {"terminated": {"exitCode": 1}}
        api_server.patch(Pod, name, {"status": {"containerStatuses": [status]}})
        api_server.script_pod(name).write_log("listening on port 8080")

    async def run_migration() -> None:
        async with api_server.open_client() as kubelet:
            await wait_for(kubelet.api(Pod, "default"), "migrate", created(), missing_ok=True)
            await trio.sleep(1)
            pod = api_server.script_pod("migrate")
            pod.write_log("3 tables migrated")
            await trio.sleep(1)
            pod.end()

    nursery.start_soon(run_migration)
    return {}

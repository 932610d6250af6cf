"""A dashboard of the pods that are not ready, with FastAPI and server-sent events.

    uvicorn dashboard:app --timeout-graceful-shutdown 3

Try: curl --no-buffer http://127.0.0.1:8000/events
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Request
from fastapi.responses import HTMLResponse
from fastapi.sse import EventSourceResponse

from trioformer import Deleted, Updated, aio, has_condition
from trioformer.models.core_v1 import Pod

PAGE = """<!doctype html>
<title>Pods that are not ready</title>
<h1>Pods that are not ready</h1>
<ul></ul>
<script>
  const list = document.querySelector("ul");
  const source = new EventSource("events");
  source.onopen = () => list.replaceChildren();
  source.onmessage = (event) => {
    const { pod, reason } = JSON.parse(event.data);
    document.getElementById(pod)?.remove();
    if (reason) {
      const row = list.appendChild(document.createElement("li"));
      row.id = pod;
      row.textContent = `${pod}: ${reason}`;
    }
  };
</script>
"""
is_ready = has_condition("Ready")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[dict[str, aio.Cache[Pod]]]:
    async with aio.open_cache(Pod) as pods:
        await pods.wait_until_synced()
        yield {"pods": pods}


def cache_of(request: Request) -> aio.Cache[Pod]:
    return request.state.pods  # type: ignore[no-any-return]


Pods = Annotated[aio.Cache[Pod], Depends(cache_of)]
app = FastAPI(lifespan=lifespan)


@app.get("/", response_class=HTMLResponse)
async def page() -> str:
    return PAGE


@app.get("/namespaces/{namespace}")
async def unready(pods: Pods, namespace: str) -> dict[str, str]:
    found = pods.list(namespace=namespace)
    return {pod.name: reason for pod in found if (reason := reason_of(pod))}


@app.get("/events", response_class=EventSourceResponse)
async def events(pods: Pods) -> AsyncIterator[dict[str, str]]:
    """Send why pods are not ready, then each change; an empty reason means ready."""
    shown: dict[str, str] = {}
    async for notification in pods.subscribe():
        if isinstance(notification, Updated):
            pod = notification.new
        else:
            pod = notification.object
        reason = "" if isinstance(notification, Deleted) else reason_of(pod)
        before = shown.pop(pod.key, "")
        if reason:
            shown[pod.key] = reason
        if reason != before:
            yield {"pod": pod.key, "reason": reason}


def reason_of(pod: Pod) -> str:
    """Return why a pod is not ready, or an empty text."""
    if pod.status.phase == "Succeeded" or is_ready(pod):
        return ""
    states = [status.state for status in pod.status.container_statuses]
    waiting = [state.waiting.reason for state in states if state.waiting]
    return ", ".join(filter(None, waiting)) or pod.status.phase or "new"

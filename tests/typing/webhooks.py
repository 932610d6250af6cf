"""What type checkers infer for webhooks; checked by mypy and pyright, never run."""

from __future__ import annotations

from typing import assert_type

from trioformer import Client
from trioformer.manager import run_controllers
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import Pod
from trioformer.models.meta_v1 import LabelSelector
from trioformer.webhooks import AdmissionRequest, Denied, Webhook, Webhooks, WebhookServer


async def check(request: AdmissionRequest[Pod]) -> list[str]:
    assert_type(request.object, Pod)
    assert_type(request.old, Pod | None)
    assert_type(request.user.username, str | None)
    raise Denied("no", {"spec": "wrong"})


async def allow(request: AdmissionRequest[Deployment]) -> None: ...


async def complete(request: AdmissionRequest[Pod]) -> Pod | None:
    return request.object


def up(old: Deployment) -> Deployment:
    return old


webhooks = Webhooks(
    validate={Pod: check, Deployment: Webhook(allow, operations=("DELETE",), object_selector=LabelSelector())},
    mutate={Pod: complete},
    convert={Deployment: {Deployment: (up, up)}},
)
Webhooks(mutate={Pod: check})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]  # it returns warnings
Webhooks(validate={Pod: up})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]  # not async
Webhook(allow, failure_policy="Never")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # unknown
assert_type(AdmissionRequest(object=Pod()), AdmissionRequest[Pod])


async def serving(client: Client) -> None:
    server = WebhookServer(webhooks, certificate="tls.crt", key="tls.key")
    await run_controllers(client, {}, webhooks=server)

"""The webhooks of ``webhooks.py`` with kopf: its handlers, which ``kopf run`` loads.

Their names are the paths of the others' webhooks.
"""

from __future__ import annotations

import os
from typing import Any

import kopf

WEBSITES = ("example.com", "v1", "websites")


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1",
        port=int(os.environ["PORT"]),
        certfile=os.environ["CERTIFICATE"],
        pkeyfile=os.environ["KEY"],
    )


@kopf.on.validate(*WEBSITES, id="validate/example.com/websites")
async def check(spec: kopf.Spec, **_: Any) -> None:
    if spec.get("replicas", 1) > 100 or not spec.get("host"):
        raise kopf.AdmissionError("a website needs a host and at most 100 replicas", code=403)


@kopf.on.mutate(*WEBSITES, id="mutate/example.com/websites")
async def complete(spec: kopf.Spec, patch: kopf.Patch, **_: Any) -> None:
    if not spec.get("tier"):
        patch.spec["tier"] = "standard"

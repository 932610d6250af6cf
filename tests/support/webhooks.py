"""Reviews as kube-apiserver sends them, and calls of webhooks in memory."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import attrs
import httpx

from trioformer.crds import custom_resource, resource_part
from trioformer.models import KubernetesObject, Model
from trioformer.testing._storage._patching import apply_json_patch
from trioformer.webhooks import Webhooks

REVIEWS = Path(__file__).parents[1] / "webhooks" / "reviews"
"""Reviews in the shape of those that Kubernetes documents, and that cert-manager and Kyverno receive."""
VALIDATE, MUTATE, CONVERT = (f"/{verb}/example.com/shops" for verb in ("validate", "mutate", "convert"))


@resource_part()
class ShopSpec(Model):
    size: int = 1
    owner: str = ""


@custom_resource("example.com/v1", stored=True)
class Shop(KubernetesObject):
    spec: ShopSpec = ShopSpec()


@resource_part()
class OldSpec(Model):
    rooms: int = 1


@custom_resource("example.com/v1alpha1", kind="Shop", stored=False)
class OldShop(KubernetesObject):
    spec: OldSpec = OldSpec()


def shop(**spec: object) -> dict[str, Any]:
    """Return a Shop, with a member that its class does not have."""
    metadata = {"name": "corner", "namespace": "web", "creationTimestamp": None}
    return {
        "apiVersion": "example.com/v1",
        "kind": "Shop",
        "metadata": metadata,
        "spec": {"size": 1, "unknown": 1.0, **spec},
    }


def review(obj: object = None, old: object = None, **members: object) -> dict[str, Any]:
    """Return an AdmissionReview for a Shop."""
    kind = {"group": "example.com", "version": "v1", "kind": "Shop"}
    request = {"uid": "u1", "kind": kind, "operation": "CREATE", "object": obj, "oldObject": old, **members}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def conversion(desired: str, *objects: object) -> dict[str, Any]:
    """Return a ConversionReview."""
    request = {"uid": "u2", "desiredAPIVersion": desired, "objects": objects}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}


def read_review(name: str) -> dict[str, Any]:
    """Return a review from a file."""
    found: dict[str, Any] = json.loads((REVIEWS / f"{name}.json").read_text())
    return found


@attrs.frozen
class Caller:
    """Calls webhooks as kube-apiserver does, in memory."""

    webhooks: Webhooks

    async def post(self, path: str, body: object, *, content_type: str = "application/json") -> httpx.Response:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=self.webhooks), base_url="https://shops"
        ) as http:
            return await http.post(path, content=data, headers={"content-type": content_type})

    async def call(self, path: str, body: object) -> dict[str, Any]:
        """Return the response in the review."""
        answer = await self.post(path, body)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json"), answer.text
        found: dict[str, Any] = answer.json()["response"]
        return found

    async def mutated(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the object after the patch of a mutating webhook."""
        answer = await self.call(path, body)
        assert answer["allowed"]
        operations = json.loads(base64.b64decode(answer["patch"])) if "patch" in answer else []
        return apply_json_patch(body["request"]["object"], operations)

"""Two states of an object with free-form JSON, and a part of somebody else's kind."""

from __future__ import annotations

from trioformer import KubernetesObject, Model
from trioformer.crds import custom_resource, resource_part
from trioformer.models import JSON


@resource_part()
class CertificateSpec(Model):
    secret_name: str = ""


@resource_part()
class ReleaseSpec(Model):
    plan: JSON = None


@custom_resource("example.com/v1")
class Release(KubernetesObject):
    spec: ReleaseSpec = ReleaseSpec()


old, new = Release(spec=ReleaseSpec(plan=1)), Release(spec=ReleaseSpec(plan=True))

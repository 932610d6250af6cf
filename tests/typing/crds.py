"""What the type checkers see of classes that the decorators make; run by mypy and pyright, never imported."""

from __future__ import annotations

from typing import Annotated, assert_type

import attrs

from trioformer.client import Api, Client
from trioformer.crds import PrinterColumn, Rule, Schema, crd_of, custom_resource, install_crds, resource_part
from trioformer.crds._definition import crds_of
from trioformer.models import KubernetesObject, Model, ObjectMeta, evolve
from trioformer.models.apiextensions_v1 import CustomResourceDefinition


@resource_part(rules=[Rule("self.host != ''")])
class PageSpec(Model):
    host: str
    replicas: Annotated[int, Schema(minimum=0)] = 1
    tags: tuple[str, ...] = attrs.field(factory=tuple)


@custom_resource("example.com/v1", short_names=["pg"], printer_columns=[PrinterColumn("Host", ".spec.host")])
class Page(KubernetesObject):
    spec: PageSpec
    status: str | None = None


page = Page(metadata=ObjectMeta(name="a"), spec=PageSpec(host="a"))
assert_type(page, Page)
assert_type(page.spec, PageSpec)
assert_type(page.spec.replicas, int)
assert_type(page.status, str | None)
assert_type(page.evolve(spec=PageSpec(host="b", tags=("c",))), Page)  # mypy checks no names, as spec has no default
assert_type(evolve(page, spec=page.spec.evolve(replicas=2)), Page)
PageSpec()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]  # host must be given
PageSpec(host=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # host is a str
Page(spec=PageSpec(host="a"), other=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]  # no such field
page.spec = PageSpec(host="b")  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]  # read-only
custom_resource("example.com/v1")(PageSpec)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]  # no kind

assert_type(crd_of(Page), CustomResourceDefinition)
assert_type(crds_of(Page), tuple[CustomResourceDefinition, ...])


async def use(client: Client) -> None:
    assert_type(await install_crds(client, Page, crd_of(Page)), tuple[CustomResourceDefinition, ...])
    assert_type(client.api(Page), Api[Page])
    await install_crds(client, PageSpec)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # no kind

"""``custom_resource`` and ``resource_part`` make the classes of custom resources and their parts."""

from __future__ import annotations

from typing import Annotated, Literal

import attrs
import pytest

from trioformer.crds import ScaleSubresource, Schema, custom_resource, resource_part
from trioformer.models import (
    KubernetesObject,
    MicroTime,
    Model,
    ObjectMeta,
    ResourceInfo,
    encode,
    from_json,
    resource_of,
)


@resource_part()
class PageSpec(Model):
    host: str
    replicas: Annotated[int, Schema(minimum=0)] = 1
    mode: Annotated[Literal["fast", "slow"], Schema(title="Mode")] = "fast"


@resource_part()
class PageStatus(Model):
    replicas: int = 0
    seen_at: Annotated[MicroTime, Schema(nullable=True)] | None = None


@custom_resource("example.com/v1", short_names=("pg",), categories=("all",), scale=ScaleSubresource())
class Page(KubernetesObject):
    """A page."""

    spec: Annotated[PageSpec, Schema(title="Spec")]
    status: PageStatus | None = None


def test_a_custom_resource_has_the_resource_that_its_decorator_states() -> None:
    assert resource_of(Page) == ResourceInfo(
        group="example.com",
        version="v1",
        kind="Page",
        plural="pages",
        namespaced=True,
        short_names=("pg",),
        subresources=("status", "scale"),
        categories=("all",),
        singular="page",
    )


def test_a_decorated_class_is_a_model_like_any_other() -> None:
    page = Page(metadata=ObjectMeta(name="a"), spec=PageSpec(host="a.example.com"))
    assert encode(page) == (
        b'{"apiVersion":"example.com/v1","kind":"Page","metadata":{"name":"a"},"spec":{"host":"a.example.com"}}'
    )
    assert from_json(Page, encode(page)).spec.replicas == 1
    assert page.evolve(spec=page.spec.evolve(replicas=2)).spec.replicas == 2
    assert Page.__doc__ == "A page."


def test_what_annotated_says_does_not_change_how_a_field_is_read_and_written() -> None:
    status = from_json(PageStatus, b'{"seenAt":"2026-01-01T00:00:00.123456Z"}')
    assert encode(status.evolve(seen_at=status.seen_at, replicas=1)) == (
        b'{"seenAt":"2026-01-01T00:00:00.123456Z","replicas":1}'
    )
    assert encode(PageStatus(seen_at=status.seen_at)) == b'{"seenAt":"2026-01-01T00:00:00.123456Z"}'
    with pytest.raises(TypeError, match=r"^Page\.spec must be a PageSpec, not a dict; write PageSpec\(\.\.\.\)"):
        Page(spec={})  # type: ignore[arg-type]  # the mistake that is tested
    with pytest.raises(TypeError, match=r"^PageSpec\.replicas must be an int, not a str$"):
        PageSpec(host="a", replicas="1")  # type: ignore[arg-type]  # the mistake that is tested


@pytest.mark.parametrize(("kind", "plural"), [("Policy", "policies"), ("Ingress", "ingresses"), ("Widget", "widgets")])
def test_the_plural_is_guessed_from_the_kind(kind: str, plural: str) -> None:
    @custom_resource("example.com/v1", kind=kind)
    class Any(KubernetesObject):
        pass

    assert (Any.__resource__.plural, Any.__resource__.singular) == (plural, kind.lower())


def test_the_status_is_a_subresource_if_the_class_has_one_and_does_not_say_otherwise() -> None:
    @custom_resource("example.com/v1")
    class Plain(KubernetesObject):
        pass

    @custom_resource("example.com/v1", status=False)
    class Whole(KubernetesObject):
        status: str = ""

    assert Plain.__resource__.subresources == ()
    assert Whole.__resource__.subresources == ()
    assert "status" in Page.__resource__.subresources


def test_a_class_that_attrs_has_made_already_is_kept() -> None:
    @custom_resource("example.com/v1")
    @attrs.frozen(kw_only=True, eq=False, repr=False)
    class Made(KubernetesObject):
        size: int = 1

    assert Made(size=2).size == 2


@pytest.mark.parametrize("api_version", ["v1", "", "/v1"])
def test_a_custom_resource_needs_a_group_and_a_version(api_version: str) -> None:
    with pytest.raises(ValueError, match=r"^api_version must be a group and a version"):
        custom_resource(api_version)


def test_a_class_that_is_no_model_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^Other is not a KubernetesObject; write class Other\(KubernetesObject\)$"):

        @custom_resource("example.com/v1")  # type: ignore[type-var]  # the mistake that is tested
        class Other:
            pass

    with pytest.raises(TypeError, match=r"^Part is not a Model; write class Part\(Model\)$"):

        @resource_part()  # type: ignore[type-var]  # the mistake that is tested
        class Part:
            pass


def test_one_name_instead_of_a_tuple_of_names_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^short_names must be a tuple of strings, not a str; write \('pg',\)$"):

        @custom_resource("example.com/v1", short_names="pg")
        class Wrong(KubernetesObject):
            pass

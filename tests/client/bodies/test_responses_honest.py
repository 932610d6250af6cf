"""Responses of honest servers that differ from what kube-apiserver sends: OpenShift, aggregated reviews, a ``List``."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import ClassVar

import attrs
import pytest

from tests.support.scripted_http import InMemory, Reply, response
from trioformer.client import Client, open_client
from trioformer.errors import UnexpectedResponseError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import KubernetesObject, ObjectMeta, ResourceInfo, metadata_kind, unstructured_kind
from trioformer.models.core_v1 import ConfigMap

PROJECTS = "project.openshift.io/v1"
User = unstructured_kind("user.openshift.io/v1", "User", plural="users", namespaced=False)
ProjectRequest = unstructured_kind(PROJECTS, "ProjectRequest", plural="projectrequests", namespaced=False)
ImageStreamImage = unstructured_kind(
    "image.openshift.io/v1", "ImageStreamImage", plural="imagestreamimages", namespaced=True
)
FooReview = unstructured_kind("e.io/v1", "FooReview", plural="fooreviews", namespaced=False)
BuildRequest = unstructured_kind("build.openshift.io/v1", "BuildRequest", plural="buildrequests", namespaced=True)
BuildConfig = unstructured_kind("build.openshift.io/v1", "BuildConfig", plural="buildconfigs", namespaced=True)


@attrs.frozen(kw_only=True)
class TypedProjectRequest(KubernetesObject):
    """A request for a project, as a class."""

    __resource__: ClassVar[ResourceInfo] = ResourceInfo(
        group="project.openshift.io", version="v1", kind="ProjectRequest", plural="projectrequests", namespaced=False
    )


WRITTEN = "the server reports success, so read the object before you try again"


@asynccontextmanager
async def client_of(*bodies: Mapping[str, object] | bytes, code: int = 200) -> AsyncIterator[Client]:
    replies: list[Reply] = [response(code, each if isinstance(each, bytes) else json.dumps(each)) for each in bodies]
    async with open_client(ClusterConfig(server="https://api.test"), http_transport=InMemory(replies)) as client:
        yield client


def obj(kind: str, api_version: str, **metadata: str | None) -> dict[str, object]:
    return {"kind": kind, "apiVersion": api_version, "metadata": metadata}


# --- another name ---


async def test_a_server_may_know_an_object_of_its_kinds_by_another_name() -> None:
    user = obj("User", "user.openshift.io/v1", name="kube:admin")
    image = obj("ImageStreamImage", "image.openshift.io/v1", name="ruby@sha256:abcdef", namespace="ns")
    async with client_of(user, user, image) as client:
        assert (await client.api(User).get("~")).name == "kube:admin"
        assert (await client.api(metadata_kind(User)).get("~")).name == "kube:admin"
        images = client.api(ImageStreamImage, "ns")
        assert (await images.get("ruby@sha256:abc")).name == "ruby@sha256:abcdef"


# --- what a creation returns ---


async def test_a_creation_may_return_another_kind_of_the_same_group() -> None:
    project = obj("Project", PROJECTS, name="demo")
    async with client_of(project, project, code=201) as client:
        made = await client.api(ProjectRequest).create(ProjectRequest.of({"metadata": {"name": "demo"}}))
        assert (made["kind"], made.name) == ("Project", "demo")
        typed = TypedProjectRequest(metadata=ObjectMeta(name="demo"))
        assert await client.api(TypedProjectRequest).create(typed) is typed


async def test_a_subresource_may_return_another_kind_of_the_same_group() -> None:
    build = obj("Build", "build.openshift.io/v1", name="web-1", namespace="ns")
    async with client_of(build, code=201) as client:
        request = BuildRequest.of({"metadata": {"name": "web"}})
        made = await client.api(BuildConfig, "ns").create_subresource("web", "instantiate", request)
        assert (made["kind"], made.name) == ("Build", "web-1")


async def test_a_creation_does_not_return_an_object_of_another_group() -> None:
    for body in [
        obj("Project", "other.openshift.io/v1", name="demo"),
        obj("Project", "v1", name="demo"),
        obj("Pro/ject", PROJECTS, name="demo"),
    ]:
        async with client_of(body, body, code=201) as client:
            with pytest.raises(UnexpectedResponseError, match=WRITTEN):
                await client.api(ProjectRequest).create(ProjectRequest.of({"metadata": {"name": "demo"}}))
            with pytest.raises(UnexpectedResponseError, match=WRITTEN):
                await client.api(TypedProjectRequest).create(TypedProjectRequest(metadata=ObjectMeta(name="demo")))


async def test_a_review_needs_neither_metadata_nor_a_name() -> None:
    for body in [
        b'{"kind":"FooReview","apiVersion":"e.io/v1","spec":{},"status":{"allowed":true}}',
        b' \n{ "kind":"FooReview","apiVersion":"e.io/v1","status":{"allowed":true}}',
        b'{"kind":"FooReview","apiVersion":"e.io/v1","metadata":{},"status":{"allowed":true}}',
        b'{"kind":"FooReview","metadata":{"creationTimestamp":null},"status":{"allowed":true}}',
    ]:
        async with client_of(body, body, code=201) as client:
            reviews = client.api(FooReview)
            for name in ({"generateName": "a-"}, {"name": "a"}):
                review = await reviews.create(FooReview.of({"metadata": name}))
                assert (review.name, review["status"]["allowed"]) == ("", True)


# --- a response to a write that is refused ---


async def test_the_error_about_a_write_says_that_the_server_reports_success() -> None:
    other = obj("Secret", "v1", name="b", namespace="ns")
    config_map = ConfigMap(metadata=ObjectMeta(name="a"))
    async with client_of(*[other] * 5, obj("Secret", "v1", name="a"), b"<html>", b"{}") as client:
        maps = client.api(ConfigMap, "ns")
        for write in (
            lambda: maps.create(config_map),
            lambda: maps.replace(config_map),
            lambda: maps.replace_status(config_map),
            lambda: maps.patch("a", {}),
            lambda: maps.delete("a"),
            lambda: maps.create(config_map),
            lambda: maps.create(config_map),
        ):
            with pytest.raises(UnexpectedResponseError, match=WRITTEN):
                await write()
        with pytest.raises(UnexpectedResponseError) as caught:
            await maps.get("a")
    assert WRITTEN not in str(caught.value)


# --- a List ---


async def test_a_list_of_kind_list_is_one_of_the_kind_of_its_items() -> None:
    user = obj("User", "user.openshift.io/v1", name="a")
    head = {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": ""}}
    async with client_of({**head, "items": [user]}, {**head, "items": []}) as client:
        assert [each.name for each in await client.api(User).list()] == ["a"]
        assert list(await client.api(User).list()) == []


async def test_a_list_of_kind_list_needs_items_that_say_their_kind() -> None:
    head = {"kind": "List", "apiVersion": "v1", "metadata": {}}
    nameless = {"metadata": {"name": "a"}}
    config_map = obj("ConfigMap", "v1", name="a")
    async with client_of(
        {**head, "items": [nameless]}, {**head, "items": [config_map]}, {**head, "apiVersion": "e.io/v1", "items": []}
    ) as client:
        for _ in range(3):
            with pytest.raises(UnexpectedResponseError):
                await client.api(User).list()

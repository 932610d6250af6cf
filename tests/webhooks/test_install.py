"""The installation of webhooks: releases, field managers, and configurations that gain and lose webhooks."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from tests.support.webhook_replicas import CONFIGURATION, SERVICE, installed_ca, installer, validating
from trioformer.client import Client
from trioformer.errors import ConflictError, NotFoundError
from trioformer.models import KubernetesObject, from_dict, to_dict
from trioformer.models.admissionregistration_v1 import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from trioformer.models.apiextensions_v1 import CustomResourceDefinition
from trioformer.testing import APIServer
from trioformer.webhooks._install import release_key

OLD, NEW = b"old CA", b"new CA"
CRD = "sites.example.com"


def stored(server: APIServer) -> ValidatingWebhookConfiguration:
    return server.get(ValidatingWebhookConfiguration, CONFIGURATION)


def names(server: APIServer) -> list[str]:
    return [each.name.partition(".")[0] for each in stored(server).webhooks]


def owners(server: APIServer) -> dict[str, bool]:
    """For each field manager, whether it owns a CA."""
    found: Any = to_dict(stored(server))
    return {each["manager"]: "f:caBundle" in str(each["fieldsV1"]) for each in found["metadata"]["managedFields"]}


def definition() -> CustomResourceDefinition:
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        }
        for name in ("v1", "v2")
    ]
    spec = {
        "group": "example.com",
        "names": {"kind": "Site", "plural": "sites"},
        "scope": "Namespaced",
        "versions": versions,
    }
    return crd(spec)


def crd(spec: dict[str, Any]) -> CustomResourceDefinition:
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": CRD}}
    return from_dict(CustomResourceDefinition, {**head, "spec": spec})


def converted() -> CustomResourceDefinition:
    config = {"service": {"name": SERVICE, "namespace": "default", "path": "/convert", "port": 443}}
    webhook = {"clientConfig": config, "conversionReviewVersions": ["v1"]}
    return crd({"conversion": {"strategy": "Webhook", "webhook": webhook}})


async def test_rules_and_cas_have_separate_owners(api_server: APIServer, client: Client) -> None:
    first = installer(client, validating("a", "b"))
    assert not await first.install(OLD)
    assert await first.install(OLD)
    assert owners(api_server) == {SERVICE: False, f"{SERVICE}-ca": True}
    assert [installed_ca(api_server, index) for index in (0, 1)] == [OLD, OLD]
    assert not await first.install(NEW)
    assert [installed_ca(api_server, index) for index in (0, 1)] == [NEW, NEW]


async def test_a_webhook_is_never_stored_without_a_ca(api_server: APIServer, client: Client) -> None:
    seen: list[bool] = []
    async with client.api(ValidatingWebhookConfiguration).watch() as events, trio.open_nursery() as nursery:

        def record(found: ValidatingWebhookConfiguration) -> None:
            seen.append(all(each.client_config.ca_bundle and each.rules for each in found.webhooks))

        async def look() -> None:
            async for event in events:
                record(event.object)

        nursery.start_soon(look)
        await installer(client, validating("a")).install(OLD)
        await installer(client, validating("a", "b")).install(OLD)
        await installer(client, validating("b")).install(OLD)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert len(seen) >= 3
    assert all(seen)


async def test_a_release_adds_and_removes_webhooks(api_server: APIServer, client: Client) -> None:
    await installer(client, validating("a", "b"), release="1").install(OLD)
    await installer(client, validating("b", "c", policy="Ignore"), release="1.1").install(OLD)
    assert sorted(names(api_server)) == ["b", "c"]
    assert {each.failure_policy for each in stored(api_server).webhooks} == {"Ignore"}


async def test_an_older_release_only_replaces_cas(
    api_server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    await installer(client, validating("a", "c", policy="Ignore"), release="1.10").install(OLD)
    with caplog.at_level(logging.WARNING, "trioformer.webhooks"):
        older = installer(client, validating("a", "b"), release="1.9")
        assert not await older.install(NEW)
        assert await older.install(NEW)
    assert names(api_server) == ["a", "c"]
    assert {each.failure_policy for each in stored(api_server).webhooks} == {"Ignore"}
    assert [installed_ca(api_server, index) for index in (0, 1)] == [NEW, NEW]
    assert ["1.10" in each.getMessage() for each in caplog.records] == [True]


async def test_an_older_release_installs_again_without_the_annotation(api_server: APIServer, client: Client) -> None:
    await installer(client, validating("c"), release="2").install(OLD)
    annotations = {"metadata": {"annotations": {"webhooks.trioformer/release": None}}}
    await client.api(ValidatingWebhookConfiguration).patch(CONFIGURATION, annotations)
    await installer(client, validating("a"), release="1").install(OLD)
    assert names(api_server) == ["a"]


async def test_a_configuration_that_a_release_does_not_have_is_deleted(api_server: APIServer, client: Client) -> None:
    await installer(client, validating("a"), release="2").install(OLD)
    await installer(client, release="1").install(OLD)
    assert names(api_server) == ["a"]
    await installer(client, release="3").install(OLD)
    assert api_server.list(ValidatingWebhookConfiguration) == []


async def test_a_configuration_of_another_program_is_not_deleted(api_server: APIServer, client: Client) -> None:
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    api_server.create(from_dict(MutatingWebhookConfiguration, {**head, "metadata": {"name": CONFIGURATION}}))
    await installer(client, validating("a")).install(OLD)
    assert len(api_server.list(MutatingWebhookConfiguration)) == 1


async def test_a_conversion_is_installed_into_the_definition(api_server: APIServer, client: Client) -> None:
    api_server.create(definition())
    first = installer(client, converted())
    assert not await first.install(OLD)
    assert await first.install(OLD)
    found: KubernetesObject = api_server.get(CustomResourceDefinition, CRD)
    raw: Any = to_dict(found)["spec"]
    assert [each["name"] for each in raw["versions"]] == ["v1", "v2"]
    assert raw["conversion"]["strategy"] == "Webhook"
    assert raw["conversion"]["webhook"]["clientConfig"]["caBundle"]


async def test_a_missing_definition_is_reported(api_server: APIServer, client: Client) -> None:
    with pytest.raises(NotFoundError, match=CRD):
        await installer(client, converted()).install(OLD)


async def test_a_leader_that_is_not_certain_to_lead_writes_nothing(api_server: APIServer, client: Client) -> None:
    def fail() -> None:
        raise KeyError("another leads")

    with pytest.raises(KeyError):
        await installer(client, validating("a"), check_leader=fail).install(OLD)
    assert api_server.list(ValidatingWebhookConfiguration) == []


async def test_a_write_in_between_is_not_overwritten(api_server: APIServer, client: Client) -> None:
    await installer(client, validating("a"), release="1").install(OLD)
    changes = iter(["2"])

    def change() -> None:
        for release in changes:
            patch = {"metadata": {"annotations": {"webhooks.trioformer/release": release}}}
            api_server.patch(ValidatingWebhookConfiguration, CONFIGURATION, patch)

    with pytest.raises(ConflictError):
        await installer(client, validating("a"), release="1.5", check_leader=change).install(NEW)
    assert installed_ca(api_server) == OLD


@given(st.lists(st.integers(0, 30), min_size=1, max_size=4), st.lists(st.integers(0, 30), min_size=1, max_size=4))
def test_releases_are_compared_by_their_numbers(first: list[int], second: list[int]) -> None:
    texts = [".".join(map(str, each)) for each in (first, second)]
    assert (release_key(texts[0]) > release_key(texts[1])) is (first > second)


@pytest.mark.parametrize("release", ["", "1.", "v1", "1.0-rc1", "\N{ARABIC-INDIC DIGIT ONE}"])
def test_other_releases_are_refused(release: str) -> None:
    with pytest.raises(ValueError, match="release"):
        release_key(release)

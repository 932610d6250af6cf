"""Definitions that classes state: installed, served, enforced, and not taken away from objects that need them."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, Literal

import pytest
import trio

from trioformer import Client
from trioformer.client import Api
from trioformer.crds import (
    PrinterColumn,
    Rule,
    ScaleSubresource,
    Schema,
    crd_of,
    custom_resource,
    install_crds,
    resource_part,
)
from trioformer.errors import BadRequestError, ConflictError, CRDInstallError, InvalidError
from trioformer.models import (
    JSON,
    FrozenMap,
    KubernetesObject,
    Model,
    ObjectMeta,
    Quantity,
    Time,
    from_dict,
    json_equal,
    to_dict,
)
from trioformer.models.apiextensions_v1 import CustomResourceDefinition
from trioformer.models.core_v1 import ConfigMap, PodTemplateSpec
from trioformer.models.meta_v1 import Condition

from .conftest import Connected

numbers = itertools.count()


@resource_part()
class Port(Model):
    name: str
    port: Annotated[int, Schema(minimum=1, maximum=65535, format="int32")]
    target: int | str | None = None


@resource_part(rules=(Rule("self.least <= self.replicas", message="replicas must be at least least"),))
class ShopSpec(Model):
    """The desired state."""

    host: Annotated[str, Schema(pattern=r"^[a-z.]+$", max_length=253)]
    """The name under which it is served."""
    replicas: Annotated[int, Schema(minimum=0, maximum=100)] = 1
    least: int = 0
    mode: Literal["fast", "slow"] = "fast"
    ports: Annotated[tuple[Port, ...], Schema(list_type="map", list_map_keys=("name",), max_items=8)] = ()
    hosts: Annotated[tuple[Annotated[str, Schema(min_length=1)], ...], Schema(list_type="set")] = ()
    labels: Mapping[str, Annotated[str, Schema(max_length=5)]] = FrozenMap()
    limit: Quantity = Quantity("100m")
    until: Time | None = None
    secret: bytes | None = None
    anything: JSON = None
    template: PodTemplateSpec | None = None
    embedded: ConfigMap | None = None


@resource_part()
class ShopStatus(Model):
    """The observed state."""

    replicas: int = 0
    selector: str | None = None
    conditions: tuple[Condition, ...] = ()


def make_shop(group: str | None = None, **given: Any) -> Any:
    """Make the class of a kind of its own group."""
    group = f"c{next(numbers)}-{os.getpid()}.example.com" if group is None else group

    @custom_resource(
        f"{group}/{given.pop('version', 'v1')}",
        **{
            "kind": "Shop",
            "scale": ScaleSubresource(label_selector=".status.selector"),
            "printer_columns": (
                PrinterColumn("Host", ".spec.host"),
                PrinterColumn("Ready", '.status.conditions[?(@.type=="Ready")].status'),
                PrinterColumn("Age", ".metadata.creationTimestamp"),
            ),
            "selectable_fields": (".spec.host",),
            **given,
        },
    )
    class Shop(KubernetesObject):
        """A shop."""

        spec: ShopSpec
        status: ShopStatus | None = None

    return Shop


@pytest.fixture
async def client(server_client: Client) -> AsyncIterator[Client]:
    with trio.fail_after(60):
        yield server_client


@pytest.fixture
async def real_client(real_server: Connected) -> AsyncIterator[Client]:
    """For what the embedded server does not do: rules in CEL, and definitions whose objects have finalizers."""
    with trio.fail_after(60):
        async with real_server() as found:
            yield found


@pytest.fixture
def definitions(client: Client) -> Api[CustomResourceDefinition]:
    return client.api(CustomResourceDefinition)


def shop(kind: Any, name: str = "a", **spec: Any) -> Any:
    return kind(metadata=ObjectMeta(name=name), spec=ShopSpec(**{"host": "a.example.com", **spec}))


async def test_a_kind_can_be_used_as_soon_as_it_is_installed(client: Client) -> None:
    kind = make_shop()
    (definition,) = await install_crds(client, kind)
    shops = client.api(kind, namespace="default")
    stored: Any = await shops.create(shop(kind))
    assert {each.type: each.status for each in definition.status.conditions}["Established"] == "True"
    assert to_dict(stored.spec) == {
        "host": "a.example.com",
        "replicas": 1,
        "least": 0,
        "mode": "fast",
        "limit": "100m",
    }
    assert "status" not in to_dict(stored)
    found = await shops.list(field_selector="spec.host=a.example.com")
    assert [each.name for each in found] == ["a"]
    with_status = stored.evolve(status=ShopStatus(replicas=1))
    assert (await shops.replace_status(with_status)).status.replicas == 1
    assert (await shops.get("a", subresource="scale")).spec.replicas == 1


async def test_every_type_of_field_comes_back_as_it_was_sent(client: Client) -> None:
    kind = make_shop()
    await install_crds(client, kind)
    spec = {
        "ports": (Port(name="a", port=80, target="http"), Port(name="b", port=81, target=8080)),
        "hosts": ("b", "a"),
        "labels": {"a": "b"},
        "limit": Quantity("1.5Gi"),
        "secret": b"\x00\xff",
        "anything": {"a": [1, 2.5, None, {"b": True}]},
        "template": from_dict(
            PodTemplateSpec,
            {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}},
        ),
        "embedded": ConfigMap(metadata=ObjectMeta(name="x"), data={"a": "b"}),
        "replicas": 0,
        "mode": "slow",
    }
    sent = shop(kind, **spec)
    stored: Any = await client.api(kind, namespace="default").create(sent)
    assert json_equal(stored.spec.evolve(least=0), sent.spec.evolve(least=0))


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"host": "A"}, "spec.host"),
        ({"replicas": 101}, "spec.replicas"),
        ({"mode": "other"}, "spec.mode"),
        ({"ports": [{"name": "a"}]}, "spec.ports[0].port"),
        ({"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]}, "spec.ports[1]"),
        ({"hosts": ["a", "a"]}, "spec.hosts[1]"),
        ({"hosts": [""]}, "spec.hosts[0]"),
        ({"labels": {"a": "too long"}}, "spec.labels.a"),
        ({"limit": "many"}, "spec.limit"),
        ({"until": "tomorrow"}, "spec.until"),
        ({"embedded": {"kind": "ConfigMap"}}, "spec.embedded.apiVersion"),
        ({"host": None}, "spec.host"),
    ],
    ids=str,
)
async def test_the_server_refuses_what_the_class_does_not_allow(
    client: Client, spec: dict[str, object], field: str
) -> None:
    kind = make_shop(group="refusals.example.com")
    await install_crds(client, kind)
    wrong = {"metadata": {"name": "wrong"}, "spec": {"host": "a", **spec}}
    with pytest.raises(InvalidError) as caught:
        await client.api(kind, namespace="default").create(from_dict(kind, wrong))
    assert field in [cause.field for cause in caught.value.details.causes]


async def test_the_server_evaluates_the_rules_of_the_class(real_client: Client) -> None:
    kind = make_shop()
    await install_crds(real_client, kind)
    with pytest.raises(InvalidError) as caught:
        await real_client.api(kind, namespace="default").create(shop(kind, least=2))
    assert [(cause.field, cause.message) for cause in caught.value.details.causes] == [
        ("spec", "Invalid value: replicas must be at least least")
    ]


async def test_what_has_not_changed_is_not_written(client: Client) -> None:
    kind = make_shop()
    (first,) = await install_crds(client, kind)
    (second,) = await install_crds(client, kind)
    assert second.resource_version == first.resource_version


async def test_several_processes_install_at_the_same_time(client: Client) -> None:
    kind = make_shop()
    found: list[str] = []

    async def install() -> None:
        (definition,) = await install_crds(client, kind)
        await client.api(kind, namespace="default").list()
        found.append(definition.uid)

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(install)
    assert len(found) == 8
    assert len(set(found)) == 1


async def test_versions_are_added_and_served(client: Client) -> None:
    old = make_shop()
    group = old.__resource__.group
    await install_crds(client, old)
    await client.api(old, namespace="default").create(shop(old))
    new = make_shop(group, version="v2", stored=True)
    older = make_shop(group, version="v1", stored=False, deprecated="use v2")
    (definition,) = await install_crds(client, older, new)
    assert [version.name for version in definition.spec.versions] == ["v1", "v2"]
    assert (await client.api(new, namespace="default").get("a")).api_version == f"{group}/v2"
    assert definition.status.stored_versions == ("v1", "v2")


async def test_a_version_that_objects_may_be_stored_in_is_not_dropped(client: Client) -> None:
    old = make_shop()
    (definition,) = await install_crds(client, old)
    new = make_shop(old.__resource__.group, version="v2")
    with pytest.raises(CRDInstallError) as caught:
        await install_crds(client, new)
    assert str(caught.value) == (
        f"{definition.name}: objects may be stored as v1, but the new definition has only v2; keep the version with"
        " served=False, write every object once, and remove it from status.storedVersions before you drop it"
    )
    assert caught.value.name == definition.name
    await client.api(old, namespace="default").list()


async def test_the_server_itself_keeps_a_stored_version(
    client: Client, definitions: Api[CustomResourceDefinition]
) -> None:
    (definition,) = await install_crds(client, make_shop())
    renamed = [{**to_dict(definition)["spec"]["versions"][0], "name": "v2"}]
    with pytest.raises(InvalidError) as caught:
        await definitions.patch(definition, {"spec": {"versions": renamed}})
    (cause,) = caught.value.details.causes
    assert cause.field == "status.storedVersions[0]"
    assert "was previously a storage version, and must remain in spec.versions" in cause.message


async def test_objects_are_selected_by_the_fields_of_the_definition(client: Client) -> None:
    kind = make_shop(selectable_fields=(".spec.host", ".spec.replicas"))
    await install_crds(client, kind)
    shops = client.api(kind, namespace="default")
    for name, replicas in (("a", 1), ("b", 2), ("c", 2)):
        await shops.create(shop(kind, name, replicas=replicas))
    assert [each.name for each in await shops.list(field_selector="spec.replicas=2")] == ["b", "c"]
    assert [each.name for each in await shops.list(field_selector="spec.replicas!=2,spec.host=a.example.com")] == ["a"]
    assert [each.name for each in await shops.list(field_selector="metadata.name=b")] == ["b"]
    with pytest.raises(BadRequestError, match=r"field label not supported: spec\.mode"):
        await shops.list(field_selector="spec.mode=fast")


async def test_what_another_manager_has_set_is_only_taken_by_force(client: Client) -> None:
    kind = make_shop()
    theirs = to_dict(crd_of(kind))
    theirs["spec"]["versions"][0]["additionalPrinterColumns"] = []
    api = client.api(CustomResourceDefinition)
    await api.create(from_dict(CustomResourceDefinition, theirs))
    with pytest.raises(ConflictError):
        await install_crds(client, kind)
    (definition,) = await install_crds(client, kind, force=True)
    assert len(definition.spec.versions[0].additional_printer_columns) == 3


async def test_names_that_are_taken_are_an_error(client: Client) -> None:
    group = f"c{next(numbers)}-{os.getpid()}.example.com"
    await install_crds(client, make_shop(group))
    other = make_shop(group, plural="stores")
    with pytest.raises(CRDInstallError) as caught:
        await install_crds(client, other)
    assert str(caught.value).startswith(f"stores.{group}: the server does not accept its names: ")
    assert "already in use" in str(caught.value)


async def test_a_definition_that_is_being_deleted_is_installed_again(real_client: Client) -> None:
    kind = make_shop()
    (first,) = await install_crds(real_client, kind)
    shops = real_client.api(kind, namespace="default")
    held = shop(kind).evolve(metadata=ObjectMeta(name="a", finalizers=("example.com/hold",)))
    await shops.create(held)
    await real_client.api(CustomResourceDefinition).delete(first.name)
    second: list[str] = []
    async with trio.open_nursery() as nursery:

        async def install() -> None:
            (definition,) = await install_crds(real_client, kind)
            second.append(definition.uid)

        nursery.start_soon(install)
        await shops.patch("a", {"metadata": {"finalizers": None}})
    assert second not in ([], [first.uid])
    assert list(await shops.list()) == []

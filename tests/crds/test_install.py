"""``install_crds`` against the embedded server, in virtual time; tests/e2e/contract/test_crds.py has the real one."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trioformer.client import Client
from trioformer.crds import crd_of, custom_resource, install_crds, resource_part
from trioformer.crds._install import wait_until_served
from trioformer.errors import CRDInstallError, NotFoundError, SchemaError
from trioformer.models import KubernetesObject, Model, ObjectMeta, to_dict
from trioformer.models.apiextensions_v1 import CustomResourceDefinition
from trioformer.testing import APIServer


@resource_part()
class ShopSpec(Model):
    replicas: int = 1


@custom_resource("example.com/v1")
class Shop(KubernetesObject):
    spec: ShopSpec = ShopSpec()


@custom_resource("example.com/v1")
class Zone(KubernetesObject):
    pass


@custom_resource("example.com/v2", kind="Shop")
class NewShop(KubernetesObject):
    spec: ShopSpec = ShopSpec()


@custom_resource("example.com/v1")
class Wrong(KubernetesObject):
    size: str | bool = True


NAME = "shops.example.com"


def conditions(**status: str) -> dict[str, Any]:
    """A patch of the conditions of a definition."""
    found = [
        {"type": kind, "status": value, "reason": "Tested", "message": f"{kind} is {value}"}
        for kind, value in status.items()
    ]
    return {"status": {"conditions": found}}


async def test_kinds_can_be_used_when_they_are_installed(client: Client) -> None:
    shops, zones = await install_crds(client, Shop, Zone)
    assert (shops.name, zones.name) == (NAME, "zones.example.com")
    await client.api(Shop, namespace="default").create(Shop(metadata=ObjectMeta(name="a")))
    assert list(await client.api(Zone).list()) == []


async def test_nothing_is_written_if_nothing_has_changed(client: Client) -> None:
    (first,) = await install_crds(client, Shop)
    (second,) = await install_crds(client, Shop)
    assert second.resource_version == first.resource_version


async def test_nothing_is_installed_if_one_class_has_no_schema(api_server: APIServer, client: Client) -> None:
    with pytest.raises(SchemaError):
        await install_crds(client, Shop, Wrong)
    assert api_server.list(CustomResourceDefinition) == []


@pytest.mark.parametrize("status", [404, 429, 503])
async def test_a_kind_that_is_not_served_yet_is_waited_for(
    status: int, api_server: APIServer, client: Client, autojump_clock: MockClock
) -> None:
    api_server.fail_next(20, verb="list", resource="shops.example.com", status=status)
    start = trio.current_time()
    await install_crds(client, Shop)
    assert 10 < trio.current_time() - start < 60


async def test_who_may_not_list_the_objects_waits_for_discovery_alone(api_server: APIServer, client: Client) -> None:
    api_server.fail_next(1, verb="list", resource="shops.example.com", status=403)
    (definition,) = await install_crds(client, Shop)
    assert definition.name == NAME


@pytest.mark.parametrize("is_older_generation", [False, True])
async def test_a_definition_is_waited_for_until_it_is_established(
    is_older_generation: bool, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    api_server.create(crd_of(Shop))
    old = conditions(NamesAccepted="False" if is_older_generation else "True", Established="False")
    if is_older_generation:  # such conditions do not count
        for condition in old["status"]["conditions"]:
            condition["observedGeneration"] = 1
        old["spec"] = {"names": {"shortNames": ["sh"]}}
    api_server.patch(CustomResourceDefinition, NAME, old)
    done = trio.Event()

    async def wait() -> None:
        await wait_until_served(client, crd_of(Shop))
        done.set()

    nursery.start_soon(wait)
    await wait_all_tasks_blocked()
    assert not done.is_set()
    api_server.patch(CustomResourceDefinition, NAME, conditions(NamesAccepted="True", Established="True"))
    await done.wait()


async def test_names_that_are_not_accepted_are_an_error(api_server: APIServer, client: Client) -> None:
    api_server.create(crd_of(Shop))
    api_server.patch(CustomResourceDefinition, NAME, conditions(NamesAccepted="False", Established="False"))
    with pytest.raises(CRDInstallError, match="names: NamesAccepted is False") as caught:
        await wait_until_served(client, crd_of(Shop))
    assert caught.value.name == NAME


async def test_a_stored_version_is_not_dropped(api_server: APIServer, client: Client) -> None:
    await install_crds(client, Shop)
    with pytest.raises(CRDInstallError, match=r"^shops\.example\.com: objects may be stored as v1"):
        await install_crds(client, NewShop)
    assert [each.name for each in api_server.get(CustomResourceDefinition, NAME).spec.versions] == ["v1"]


async def test_a_definition_that_is_being_deleted_is_applied_after_its_end(
    api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    held = to_dict(crd_of(Shop))
    held["metadata"]["finalizers"] = ["example.com/hold"]
    api_server.create(held)
    first = api_server.get(CustomResourceDefinition, NAME).uid
    api_server.delete(CustomResourceDefinition, NAME)
    installed: list[CustomResourceDefinition] = []

    async def install() -> None:
        installed.extend(await install_crds(client, Shop))

    nursery.start_soon(install)
    await wait_all_tasks_blocked()
    assert installed == []
    api_server.patch(CustomResourceDefinition, NAME, {"metadata": {"finalizers": None}})
    await wait_all_tasks_blocked()
    (definition,) = installed
    assert definition.uid != first


@resource_part()
class LargeSpec(Model):
    replicas: int = 1
    note: str | None = None


@custom_resource("example.com/v1", kind="Shop")
class LargeShop(KubernetesObject):
    spec: LargeSpec = LargeSpec()


async def test_an_old_program_does_not_drop_fields_of_a_version(api_server: APIServer, client: Client) -> None:
    await install_crds(client, Shop)
    (newest,) = await install_crds(client, LargeShop)
    with pytest.raises(
        CRDInstallError, match=r"^shops\.example\.com: the new schema of v1 does not have \.spec\.note, "
    ):
        await install_crds(client, Shop)
    assert api_server.get(CustomResourceDefinition, NAME).resource_version == newest.resource_version
    await install_crds(client, Shop, may_drop_fields=True)


async def test_the_wait_for_a_definition_that_is_deleted_meanwhile_ends(
    autojump_clock: MockClock, api_server: APIServer, client: Client
) -> None:
    name = "shops.example.com"

    async def delete() -> None:
        await trio.sleep(0.02)
        await client.api(CustomResourceDefinition).delete(name)

    api_server.fail_next(3, verb="list", resource=name, status=503)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(delete)
        with trio.fail_after(60), pytest.raises(NotFoundError, match=name):
            await install_crds(client, Shop)

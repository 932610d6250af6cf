"""create_or_update(): what it compares, what it leaves alone, and what it does about stale caches and other writers."""

from __future__ import annotations

import json
from typing import Any, cast

import attrs
import pytest
import trio

from tests.support.messages import model_of
from tests.support.scripted_http import InMemory, response
from trioformer import Api, Client, ObjectMeta, SharedInformerFactory, open_client
from trioformer.controller import AlreadyOwnedError, create_or_update, set_controller_reference
from trioformer.controller._create_or_update import _ONE_OF, _changes_of
from trioformer.errors import ConflictError, NotFoundError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import OwnerReference, from_dict, to_dict
from trioformer.models._internal import camel_case, tagged
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import ConfigMap, Namespace, Node, Pod, Secret, Volume
from trioformer.testing import APIServer

CONFIG = ClusterConfig(server="http://server.invalid", source="test")


@pytest.fixture
def api(client: Client) -> Api[ConfigMap]:
    return client.api(ConfigMap)


def config_map(*, name: str = "a", **rest: Any) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), **rest)


def owner_in(server: APIServer, name: str = "owner") -> ConfigMap:
    server.create(config_map(name=name))
    return server.get(ConfigMap, name)


def writes(server: APIServer) -> list[str]:
    return [each.verb for each in server.requests if each.verb in ("create", "patch", "update")]


# --- what is done -----------------------------------------------------------------------------------------------------


async def test_an_object_is_created_changed_and_then_left_alone(api: Api[ConfigMap], api_server: APIServer) -> None:
    done: list[str] = []
    for text in ("1", "2", "2"):
        written = await create_or_update(api, config_map(data={"k": text}))
        done.append(written.operation)
        assert written.object == api_server.get(ConfigMap, "a")
        assert written.object.data == {"k": text}
    assert done == ["created", "updated", "unchanged"]
    assert writes(api_server) == ["create", "patch"]


async def test_fields_that_are_not_wanted_are_left_alone(api: Api[ConfigMap], api_server: APIServer) -> None:
    theirs = {"labels": {"theirs": "1", "both": "1"}, "annotations": {"theirs": "1"}, "finalizers": ["example.com/x"]}
    foreign = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
    metadata = {"name": "a", "namespace": "default", "ownerReferences": [foreign], **theirs}
    api_server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"theirs": "1"}})
    wanted = ConfigMap(
        metadata=ObjectMeta(name="a", labels={"both": "2", "ours": "2"}, finalizers=("example.com/ours",)),
        data={"ours": "2"},
    )
    owner = owner_in(api_server)
    written = await create_or_update(api, wanted, owner=owner)
    assert written.operation == "updated"
    now = to_dict(written.object)
    assert now["data"] == {"theirs": "1", "ours": "2"}
    assert now["metadata"]["labels"] == {"theirs": "1", "both": "2", "ours": "2"}
    assert now["metadata"]["annotations"] == {"theirs": "1"}
    assert now["metadata"]["finalizers"] == ["example.com/x", "example.com/ours"]
    assert [each["name"] for each in now["metadata"]["ownerReferences"]] == ["n", "owner"]
    assert (await create_or_update(api, wanted, owner=owner)).operation == "unchanged"
    assert writes(api_server) == ["patch"]


async def test_what_the_server_fills_in_is_no_difference(client: Client, api_server: APIServer) -> None:
    container = {"name": "web", "image": "nginx", "ports": [{"containerPort": 80}]}
    metadata = {"name": "a", "namespace": "default"}
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    wanted = from_dict(Deployment, {"metadata": metadata, "spec": spec})
    stored = api_server.create(wanted)
    (stored_container,) = to_dict(stored)["spec"]["template"]["spec"]["containers"]
    assert stored_container["imagePullPolicy"] == "Always"
    deployments = client.api(Deployment)
    assert (await create_or_update(deployments, wanted)).operation == "unchanged"
    image = from_dict(
        Deployment,
        {"metadata": metadata, "spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:2"}]}}}},
    )
    written = await create_or_update(deployments, image)
    assert written.operation == "updated"
    (changed,) = to_dict(written.object)["spec"]["template"]["spec"]["containers"]
    assert changed == stored_container | {"image": "nginx:2"}
    assert to_dict(written.object)["spec"]["replicas"] == 1


async def test_the_status_is_not_sent_for_a_kind_with_a_status_subresource(
    client: Client, api_server: APIServer
) -> None:
    metadata = {"name": "a", "namespace": "default"}
    wanted = from_dict(Pod, {"metadata": metadata, "spec": {"containers": []}, "status": {"phase": "Failed"}})
    api_server.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}})
    assert (await create_or_update(client.api(Pod), wanted)).operation == "unchanged"


async def test_the_same_amount_in_another_form_is_no_difference() -> None:
    def pod(cpu: str) -> Pod:
        container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": cpu}}}
        metadata = {"name": "a", "namespace": "default", "resourceVersion": "7", "uid": "u"}
        spec = {"containers": [container]}
        return from_dict(Pod, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    http = InMemory([response(200, json.dumps(to_dict(pod("500m")))) for _ in range(3)])
    async with open_client(CONFIG, http_transport=http) as client:
        for cpu in ("0.5", "0.6"):
            await create_or_update(client, pod(cpu))
    assert [each.method for each in http.requests] == ["GET", "GET", "PATCH"]


async def test_the_string_data_of_a_secret_is_compared_with_what_the_server_makes_of_it() -> None:
    metadata = {"name": "a", "namespace": "default", "resourceVersion": "7", "uid": "u"}
    stored = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"a": "MQ==", "b": "Mg=="}}
    http = InMemory([response(200, json.dumps(stored)) for _ in range(3)])
    async with open_client(CONFIG, http_transport=http) as client:
        for text in ("2", "3"):
            wanted = Secret(metadata=ObjectMeta(name="a", namespace="default"), string_data={"b": text})
            await create_or_update(client, wanted)
    assert [each.method for each in http.requests] == ["GET", "GET", "PATCH"]
    assert json.loads(http.requests[2].content)["data"] == {"b": "Mw=="}


async def test_what_changes_nothing_on_the_server_is_unchanged(api_server: APIServer) -> None:
    """Such as a time in another form, which a real server stores in its own."""
    stored = to_dict(config_map(data={"cpu": "500m"}))
    stored["metadata"] |= {"resourceVersion": "7", "uid": "u"}
    http = InMemory([response(200, json.dumps(stored)), response(200, json.dumps(stored))])
    async with open_client(CONFIG, http_transport=http) as client:
        written = await create_or_update(client.api(ConfigMap), config_map(data={"cpu": "0.5"}))
    assert written.operation == "unchanged"
    assert [each.method for each in http.requests] == ["GET", "PATCH"]


async def test_an_empty_mapping_that_the_server_drops_is_unchanged() -> None:
    stored = to_dict(config_map())
    stored["metadata"] |= {"resourceVersion": "7", "uid": "u"}
    http = InMemory([response(200, json.dumps(stored)) for _ in range(2)])
    async with open_client(CONFIG, http_transport=http) as client:
        wanted = from_dict(ConfigMap, {"metadata": {"name": "a", "namespace": "default"}, "data": {}})
        written = await create_or_update(client, wanted)
    assert written.operation == "unchanged"
    assert json.loads(http.requests[1].content)["data"] == {}


async def test_nulls_are_not_sent_when_an_object_is_created(api: Api[ConfigMap], api_server: APIServer) -> None:
    """A real server makes an empty text of a null in ``data``."""
    metadata = {"name": "a", "namespace": "default", "annotations": {"b": None}}
    wanted = from_dict(ConfigMap, {"metadata": metadata, "data": {"k": None, "v": "1"}})
    written = [await create_or_update(api, wanted) for _ in range(2)]
    assert [each.operation for each in written] == ["created", "unchanged"]
    assert api_server.get(ConfigMap, "a").data == {"v": "1"}


# --- what is compared -------------------------------------------------------------------------------------------------

WEB = {"name": "web", "image": "1", "pull": "Always"}
SIDE = {"name": "side", "image": "1"}


@pytest.mark.parametrize(
    ("now", "wanted", "changes"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {"a": True}, {"a": True}),
        ({"a": {"b": 1, "c": 1}}, {"a": {"b": 2}}, {"a": {"b": 2}}),
        ({"a": 1}, {"a": None}, {"a": None}),
        ({}, {"a": None}, {}),
        ({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
        ({}, {"a": []}, {}),
        ({"a": None}, {"a": []}, {}),
        ({"a": [1], "b": {"c": 1}}, {"a": [], "b": {}}, {"a": []}),
        # An empty mapping is a value; one of nulls only says nothing of what is not there.
        ({}, {"a": {}}, {"a": {}}),
        ({"a": {}}, {"a": {}}, {}),
        ({"a": {}}, {"a": None}, {"a": None}),
        ({}, {"a": {"b": None}}, {}),
        ({}, {"a": {"b": {}, "c": []}}, {"a": {"b": {}, "c": []}}),
        ({"a": []}, {"a": [{"b": {}}, {"name": "n", "c": {}}]}, {"a": [{"b": {}}, {"name": "n", "c": {}}]}),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": {}}]}, {"a": [{"b": 1, "c": {}}]}),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": [], "d": None}]}, {}),
        ({"a": []}, {"a": [{"b": 1, "d": None}]}, {"a": [{"b": 1}]}),
        ({"a": ""}, {"a": []}, {"a": []}),
        ({"a": [1, 2]}, {"a": [1, 2]}, {}),
        ({"a": [1, 2]}, {"a": [2, 1]}, {"a": [2, 1]}),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
        ({"a": [[{"b": 1, "c": 1}]]}, {"a": [[{"b": 1}]]}, {}),
        # Items with names keep what is not wanted of them, wherever they are.
        ({"a": [WEB]}, {"a": [{"name": "web", "image": "1"}]}, {}),
        ({"a": [WEB]}, {"a": [{"name": "web", "image": "2"}]}, {"a": [WEB | {"image": "2"}]}),
        ({"a": [WEB, SIDE]}, {"a": [SIDE, {"name": "web"}]}, {"a": [SIDE, WEB]}),
        ({"a": [WEB, SIDE]}, {"a": [{"name": "web"}]}, {"a": [WEB]}),
        ({"a": [WEB]}, {"a": [{"name": "web"}, {"name": "new", "x": None}]}, {"a": [WEB, {"name": "new"}]}),
        # Items without names keep it only if they are otherwise equal.
        ({"a": [{"p": 80, "q": "TCP"}]}, {"a": [{"p": 80}]}, {}),
        ({"a": [{"p": 80, "q": "TCP"}]}, {"a": [{"p": 81}]}, {"a": [{"p": 81}]}),
        (
            {"a": [{"h": "x", "tls": 1}, {"h": "y", "tls": 2}]},
            {"a": [{"h": "new"}, {"h": "y"}]},
            {"a": [{"h": "new"}, {"h": "y", "tls": 2}]},
        ),
        (
            {"a": [{"name": "x", "p": 1}, {"name": "x", "p": 2}]},
            {"a": [{"name": "x", "p": 2}, {"name": "x", "p": 1}]},
            {"a": [{"name": "x", "p": 2}, {"name": "x", "p": 1}]},
        ),
    ],
)
def test_the_changes_are_those_of_the_wanted_fields_only(now: Any, wanted: Any, changes: Any) -> None:
    assert _changes_of(now, wanted) == changes


def env(**members: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "i", "env": [{"name": "E", **members}]}]}


SECRET_KEY = {"secretKeyRef": {"name": "s", "key": "k"}}
TCP, HTTP = {"tcpSocket": {"port": 80}}, {"httpGet": {"port": 80, "scheme": "HTTP"}}
MATCHED, ALL = {"podSelector": {"matchLabels": {"a": "b"}}}, {"podSelector": {}}


@pytest.mark.parametrize(
    ("now", "wanted", "changes"),
    [
        (env(value="1"), env(valueFrom=SECRET_KEY), env(valueFrom=SECRET_KEY)),
        (env(valueFrom=SECRET_KEY), env(value="1"), env(value="1")),
        (env(value="1"), env(), env()),
        (env(value="1"), env(value=None, valueFrom=SECRET_KEY), env(valueFrom=SECRET_KEY)),
        (env(valueFrom={"fieldRef": {}}), env(valueFrom=SECRET_KEY), env(valueFrom=SECRET_KEY)),
        (
            {"volumes": [{"name": "v", "configMap": {"name": "c"}}]},
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"volumes": [{"name": "v", "emptyDir": {}}]},
        ),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, {"volumes": [{"name": "v"}]}, {}),
        (
            {"livenessProbe": {**HTTP, "periodSeconds": 10}},
            {"livenessProbe": TCP},
            {"livenessProbe": {"httpGet": None, **TCP}},
        ),
        ({"livenessProbe": {**HTTP, "periodSeconds": 10}}, {"livenessProbe": {"periodSeconds": 10}}, {}),
        (
            {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
            {"strategy": {"type": "Recreate"}},
            {"strategy": {"type": "Recreate", "rollingUpdate": None}},
        ),
        (
            {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
            {"strategy": {"type": "RollingUpdate"}},
            {},
        ),
        (
            {"spec": {"minAvailable": 1}},
            {"spec": {"maxUnavailable": 1}},
            {"spec": {"minAvailable": None, "maxUnavailable": 1}},
        ),
        (
            {"ingress": [{"from": [{**MATCHED, "namespaceSelector": {}}]}]},
            {"ingress": [{"from": [MATCHED]}]},
            {"ingress": [{"from": [MATCHED]}]},
        ),
    ],
)
def test_a_member_that_excludes_others_removes_them(now: Any, wanted: Any, changes: Any) -> None:
    assert _changes_of(now, wanted) == changes


def test_every_source_of_a_volume_excludes_the_others() -> None:
    names = getattr(Volume, "_json_names", {})
    sources = {names.get(each.name, camel_case(each.name)) for each in attrs.fields(Volume)}
    assert _ONE_OF["volumes"] == sources - {"name", "origin"}


@pytest.mark.parametrize(
    ("now", "wanted", "changes"),
    [
        (MATCHED, ALL, {"podSelector": {"matchLabels": None}}),
        (ALL, MATCHED, MATCHED),
        (MATCHED, MATCHED, {}),
        ({"selector": {"a": "1", "b": "1"}}, {"selector": {"a": "1"}}, {"selector": {"b": None}}),
        (ALL, {"podSelector": {"matchExpressions": []}}, {}),
        ({"to": [{"podSelector": {"matchLabels": {"a": "b", "c": "d"}}}]}, {"to": [MATCHED]}, {"to": [MATCHED]}),
    ],
)
def test_a_selector_is_compared_as_a_whole(now: Any, wanted: Any, changes: Any) -> None:
    assert _changes_of(now, wanted) == changes


# --- owners -----------------------------------------------------------------------------------------------------------


async def test_an_owned_object_is_in_the_namespace_of_its_owner(client: Client, api_server: APIServer) -> None:
    api_server.create(Namespace(metadata=ObjectMeta(name="other")))
    api_server.create(ConfigMap(metadata=ObjectMeta(name="owner", namespace="other")))
    owner = api_server.get(ConfigMap, "owner", namespace="other")
    wanted = ConfigMap(metadata=ObjectMeta(name="a"))
    for operation in ("created", "unchanged"):
        written = await create_or_update(client.api(ConfigMap), wanted, owner=owner)
        assert (written.operation, written.object.namespace) == (operation, "other")
    (reference,) = written.object.metadata.owner_references
    assert (reference.uid, reference.controller, reference.block_owner_deletion) == (owner.uid, True, True)


async def test_an_object_of_another_controller_is_not_touched(api: Api[ConfigMap], api_server: APIServer) -> None:
    one, other = owner_in(api_server, "one"), owner_in(api_server, "other")
    await create_or_update(api, config_map(data={"k": "1"}), owner=one)
    with pytest.raises(AlreadyOwnedError, match="controlled by ConfigMap one"):
        await create_or_update(api, config_map(data={"k": "2"}), owner=other)
    assert api_server.get(ConfigMap, "a").data == {"k": "1"}


def test_a_controller_reference_keeps_other_owners_and_is_set_once() -> None:
    owner = ConfigMap(metadata=ObjectMeta(name="owner", namespace="default", uid="u"))
    other = OwnerReference(api_version="v1", kind="Pod", name="p", uid="p")
    obj = Pod(metadata=ObjectMeta(name="a", owner_references=(other,)))
    owned = set_controller_reference(obj, owner)
    assert (owned.namespace, [each.uid for each in owned.metadata.owner_references]) == ("default", ["p", "u"])
    assert set_controller_reference(owned, owner) is owned


@pytest.mark.parametrize(
    ("obj", "owner", "text"),
    [
        (
            Pod(metadata=ObjectMeta(name="a", namespace="other")),
            Pod(metadata=ObjectMeta(name="o", namespace="default", uid="u")),
            "another namespace",
        ),
        (
            Node(metadata=ObjectMeta(name="a")),
            Pod(metadata=ObjectMeta(name="o", namespace="default", uid="u")),
            "another namespace",
        ),
        (Pod(metadata=ObjectMeta(name="a")), Pod(metadata=ObjectMeta(name="o")), "<Pod o> has no uid"),
    ],
)
def test_an_owner_in_another_namespace_or_without_a_uid_is_refused(obj: Any, owner: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        set_controller_reference(obj, owner)


def test_a_cluster_scoped_owner_owns_in_every_namespace_and_in_none() -> None:
    node = Node(metadata=ObjectMeta(name="n", uid="u"))
    for obj in (Pod(metadata=ObjectMeta(name="a", namespace="x")), Namespace(metadata=ObjectMeta(name="a"))):
        owned = set_controller_reference(obj, node)
        assert (owned.namespace, owned.metadata.owner_references[0].name) == (obj.namespace, "n")


# --- the cache, and other writers -------------------------------------------------------------------------------------


async def test_with_a_lister_nothing_is_read_and_a_late_cache_is_made_up_for(
    autojump_clock: object, client: Client, api_server: APIServer, nursery: trio.Nursery
) -> None:
    factory = SharedInformerFactory(client)
    lister = factory.informer(ConfigMap).lister
    await nursery.start(factory.run)
    api, done = client.api(ConfigMap), []

    async def write(text: str) -> list[str]:
        api_server.requests.clear()
        done.append((await create_or_update(api, config_map(data={"k": text}), lister=lister)).operation)
        return [each.verb for each in api_server.requests if each.verb in ("get", "create", "patch")]

    assert await write("1") == ["create"]
    await trio.sleep(1)
    assert await write("1") == []
    assert await write("2") == ["patch"]
    # From here on the cache is late.
    api_server.fail_next(100, verb="watch", resource="configmaps")
    api_server.disconnect_watches(kind=ConfigMap)
    api_server.patch(ConfigMap, "a", {"data": {"theirs": "1"}})
    assert await write("3") == ["patch", "get", "patch"]
    api_server.delete(ConfigMap, "a")
    assert await write("4") == ["patch", "get", "create"]
    assert done == ["created", "unchanged", "updated", "updated", "created"]
    nursery.cancel_scope.cancel()


async def test_an_object_with_a_newer_field_in_the_cache_is_read_from_the_server(
    api: Api[ConfigMap], api_server: APIServer
) -> None:
    api_server.create(config_map(data={"a": "1"}))
    newer = model_of(ConfigMap, tagged(1, tagged(1, b"a") + tagged(3, b"default")) + tagged(1000, b"newer"))

    class Cache:
        def get(self, wanted: ConfigMap) -> ConfigMap:
            return newer

    written = await create_or_update(api, config_map(data={"a": "2"}), lister=cast("Any", Cache()))
    assert written.object.data == {"a": "2"}
    assert [request.verb for request in api_server.requests][-2:] == ["get", "patch"]


async def test_without_a_cache_the_errors_of_other_writers_are_raised(
    api: Api[ConfigMap], api_server: APIServer
) -> None:
    api_server.fail_next(1, verb="create", resource="configmaps", status=409)
    with pytest.raises(ConflictError):
        await create_or_update(api, config_map())
    api_server.create(config_map())
    api_server.fail_next(1, verb="patch", resource="configmaps", status=409)
    with pytest.raises(ConflictError):
        await create_or_update(api, config_map(data={"k": "1"}))


async def test_a_change_is_guarded_by_the_version_that_was_compared() -> None:
    stored = to_dict(config_map(data={"k": "1"}))
    stored["metadata"] |= {"resourceVersion": "7", "uid": "u"}
    http = InMemory([response(200, json.dumps(stored)), response(200, json.dumps(stored))])
    async with open_client(CONFIG, http_transport=http) as client:
        await create_or_update(client.api(ConfigMap), config_map(data={"k": "2"}))
    metadata = {"uid": "u", "resourceVersion": "7"}
    assert json.loads(http.requests[1].content) == {"data": {"k": "2"}, "metadata": metadata}


@pytest.mark.parametrize("knows_it_from", ["the cache", "the wanted object"])
async def test_an_object_that_was_created_anew_is_not_changed(
    knows_it_from: str, api: Api[ConfigMap], api_server: APIServer
) -> None:
    old = api_server.create(config_map(data={"a": "1"}))
    api_server.delete(ConfigMap, "a")
    new = api_server.create(config_map(data={"a": "of another"}))

    class Cache:
        def get(self, wanted: ConfigMap) -> ConfigMap:
            return old

    wanted, cache = config_map(data={"a": "2"}), Cache()
    arguments: dict[str, Any] = {"lister": cache} if knows_it_from == "the cache" else {}
    if knows_it_from == "the wanted object":
        wanted = old.evolve(data={"a": "2"})
    with pytest.raises(
        ConflictError, match=f"with uid {old.uid} no longer exists; the current object has uid {new.uid}"
    ):
        await create_or_update(api, wanted, **arguments)
    assert api_server.get(ConfigMap, "a") == new
    written = await create_or_update(api, config_map(data={"a": "of another"}), **arguments)
    assert written.operation == "unchanged", "nothing would be written"


async def test_a_proxy_that_finds_nothing_does_not_count_as_a_missing_object() -> None:
    http = InMemory([response(404, "<html>not here</html>")])
    async with open_client(CONFIG, http_transport=http) as client:
        with pytest.raises(NotFoundError):
            await create_or_update(client.api(ConfigMap), config_map())
    assert [each.method for each in http.requests] == ["GET"]


# --- mistakes ---------------------------------------------------------------------------------------------------------


async def test_an_object_without_a_name_or_of_another_kind_is_refused(api: Api[ConfigMap]) -> None:
    wanted: Any = ConfigMap(metadata=ObjectMeta(generate_name="a-"))
    with pytest.raises(ValueError, match="no name"):
        await create_or_update(api, wanted)
    for wanted in (Pod(metadata=ObjectMeta(name="a")), {"metadata": {"name": "a"}}):
        with pytest.raises(TypeError, match="the API is for ConfigMap"):
            await create_or_update(api, wanted)

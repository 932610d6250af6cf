"""Impersonation, warnings, request IDs and compression against a real API server; impersonation beside kubectl."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
import trio
import yaml

from tests.e2e.workloads import make_namespace
from trioformer import open_client
from trioformer.client import Client, ClientOptions
from trioformer.errors import ForbiddenError, NotFoundError
from trioformer.models import ObjectMeta, from_dict, to_dict
from trioformer.models.authentication_v1 import SelfSubjectReview
from trioformer.models.core_v1 import ComponentStatus, ConfigMap, Pod, Secret
from trioformer.testing import ControlPlane
from trioformer.transport import ServerWarning

EXTRA = {
    "scopes": ["view", "edit"],
    "example.com/role": ["a b"],
    "100%": ["x=y, z"],
    "a%2fb": ["1"],
    "a b": ["2"],
    "a:b=c": ["é", ""],
    "!#$&'*+-.^_`|~": ["all"],
}
USERS: dict[str, dict[str, Any]] = {
    "user": {"as": "jane"},
    "service account": {"as": "system:serviceaccount:default:web"},
    "groups": {"as": "jane", "as-groups": ["dev", "system:masters", "a b"]},
    "uid": {"as": "jane", "as-uid": "7f6c2d1e"},
    "not ascii": {"as": "Zoë", "as-groups": ["Gruppe ß"]},
    "extra": {"as": "jane", "as-user-extra": EXTRA},
    "all": {"as": "jane", "as-groups": ["dev"], "as-uid": "7", "as-user-extra": EXTRA},
}


def kubeconfig_of(control_plane: ControlPlane, path: Path, user: dict[str, Any]) -> Path:
    """Write a kubeconfig whose user impersonates."""
    document = yaml.safe_load(control_plane.kubeconfig.read_text())
    document["users"][0]["user"] |= user
    path.write_text(yaml.safe_dump(document))
    path.chmod(0o600)
    return path


async def who_am_i(client: Client) -> dict[str, Any]:
    review = await client.api(SelfSubjectReview).create(from_dict(SelfSubjectReview, {"metadata": {}}))
    return dict(to_dict(review)["status"]["userInfo"])  # type: ignore[index,call-overload,arg-type]  # JSON


@pytest.mark.parametrize("name", USERS)
async def test_the_server_sees_the_user_that_it_sees_with_kubectl(
    control_plane: ControlPlane, assets: Path, tmp_path: Path, name: str
) -> None:
    given = USERS[name]
    path = kubeconfig_of(control_plane, tmp_path / "kubeconfig", given)
    kubectl = assets / "kubectl"
    done = await trio.run_process(
        [str(kubectl), "--kubeconfig", str(path), f"--cache-dir={tmp_path}", "auth", "whoami", "-o", "json"],
        capture_stdout=True,
    )
    expected = json.loads(done.stdout)["status"]["userInfo"]
    assert expected["username"] == given["as"]
    async with open_client(kubeconfig=path) as client:
        assert await who_am_i(client) == expected
    async with open_client(kubeconfig=control_plane.kubeconfig) as client:
        own = await who_am_i(client)
        other = client.impersonating(
            given["as"],
            groups=given.get("as-groups", ()),
            uid=given.get("as-uid"),
            extra=given.get("as-user-extra"),
        )
        assert await who_am_i(other) == expected
        assert await who_am_i(client) == own


async def test_who_is_impersonated_has_the_permissions_of_that_user_alone(control_plane: ControlPlane) -> None:
    async with open_client(kubeconfig=control_plane.kubeconfig) as client:
        namespace = await make_namespace(client, "impersonation")
        jane = client.impersonating("jane")
        with pytest.raises(ForbiddenError, match='User "jane" cannot list'):
            await jane.api(Secret, namespace).list()
        with pytest.raises(ForbiddenError, match='User "jane" cannot watch'):
            async with jane.api(Secret, namespace).watch():
                pass
        async with open_client(jane.config) as again:
            assert (await who_am_i(again))["username"] == "jane"
        await client.api(Secret, namespace).list()


UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


async def test_an_error_has_the_id_of_its_request(control_plane: ControlPlane) -> None:
    async with open_client(kubeconfig=control_plane.kubeconfig) as client:
        ids = []
        for _ in range(2):
            with pytest.raises(NotFoundError) as caught:
                await client.api(Pod, "default").get("no-such-pod")
            ids.append(caught.value.request_id)
    assert all(UUID.fullmatch(each) for each in ids)
    assert ids[0] != ids[1]


async def test_deprecated_apis_and_unknown_fields_are_warned_of(
    control_plane: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    unknown = from_dict(ConfigMap, {"metadata": {"name": "unknown"}, "color": "red", "size": 7})
    found: list[ServerWarning] = []
    async with open_client(kubeconfig=control_plane.kubeconfig) as client:
        namespace = await make_namespace(client, "warnings")
        for _ in range(2):
            await client.api(ComponentStatus).list()
        await client.api(ConfigMap, namespace).create(unknown)
    logged = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    server = client.config.server
    assert logged == [
        f"{server}: list componentstatuses: v1 ComponentStatus is deprecated in v1.19+",
        f'{server}: create configmaps/unknown in namespace {namespace}: unknown field "color"',
        f'{server}: create configmaps/unknown in namespace {namespace}: unknown field "size"',
    ]
    async with open_client(
        kubeconfig=control_plane.kubeconfig, options=ClientOptions(warning_handler=found.append)
    ) as client:
        for _ in range(2):
            await client.api(ComponentStatus).list()
    assert [warning.text for warning in found] == ["v1 ComponentStatus is deprecated in v1.19+"] * 2


async def test_a_list_and_an_object_are_the_same_with_and_without_compression(control_plane: ControlPlane) -> None:
    async with (
        open_client(kubeconfig=control_plane.kubeconfig, options=ClientOptions(compression=False)) as plain,
        open_client(kubeconfig=control_plane.kubeconfig, options=ClientOptions(compression=True)) as compressed,
    ):
        namespace = await make_namespace(plain, "compression")
        for number in range(6):
            data = {"text": f"{number}," * 50_000}
            await plain.api(ConfigMap, namespace).create(ConfigMap(metadata=ObjectMeta(name=f"c{number}"), data=data))
        expected = await plain.api(ConfigMap, namespace).list()
        assert len(expected) == 6
        for page_size in (2, None):
            found = await compressed.api(ConfigMap, namespace).list(page_size=page_size)
            assert [to_dict(each) for each in found] == [to_dict(each) for each in expected]
        one = await compressed.api(ConfigMap, namespace).get("c3")
        assert to_dict(one)["data"] == to_dict(expected.items[3])["data"]

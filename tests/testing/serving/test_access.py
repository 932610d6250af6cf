"""The users of the embedded server alone; e2e/contract/test_access.py has what kube-apiserver says, too."""

from __future__ import annotations

import attrs
import pytest
import trio
import trio.testing

from tests.support.raw_requests import failure_of, running
from trioformer import open_client
from trioformer.client import Client
from trioformer.errors import UnauthorizedError
from trioformer.models import ObjectMeta
from trioformer.models.authentication_v1 import SelfSubjectReview, UserInfo
from trioformer.models.core_v1 import Pod, ServiceAccount
from trioformer.testing import APIServer


async def user_of(client: Client) -> UserInfo:
    return (await client.api(SelfSubjectReview).create(SelfSubjectReview())).status.user_info


async def test_an_impersonated_user_has_its_groups_and_attributes(client: Client) -> None:
    jane = client.impersonating("jane", groups=["devs", "ops"], uid="7", extra={"Scopes/a b": ["view", "edit"]})
    user = await user_of(jane)
    assert (user.username, user.uid) == ("jane", "7")
    assert user.groups == ("devs", "ops", "system:authenticated")
    assert user.extra == {"scopes/a b": ("view", "edit")}
    robot = await user_of(client.impersonating("system:serviceaccount:web:robot"))
    assert robot.groups == ("system:serviceaccounts", "system:serviceaccounts:web", "system:authenticated")
    assert (await user_of(client.impersonating("system:anonymous"))).groups == ("system:unauthenticated",)


async def test_a_group_cannot_be_impersonated_without_a_user() -> None:
    async with running(APIServer()) as http:
        response = await http.get("/api/v1/pods", headers={"Impersonate-Group": "devs"})
    assert failure_of(response)[:2] == (400, "BadRequest")


async def test_an_expired_token_is_unauthorized(
    api_server: APIServer, client: Client, autojump_clock: trio.testing.MockClock
) -> None:
    accounts = client.api(ServiceAccount, "default")
    await accounts.create(ServiceAccount(metadata=ObjectMeta(name="robot")))
    token = (await accounts.create_token("robot", expiration_seconds=600)).status.token
    config = attrs.evolve(api_server.config, token=token)
    async with open_client(config, http_transport=api_server.http_transport()) as robot:
        assert (await user_of(robot)).username == "system:serviceaccount:default:robot"
        await trio.sleep(700)
        with pytest.raises(UnauthorizedError):
            await robot.api(Pod, "default").list()

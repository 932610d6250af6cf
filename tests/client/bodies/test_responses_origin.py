"""An error of the server says which server it was, from which configuration, and how the user was authenticated."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.client.bodies.test_responses_failures import CALLS
from tests.support.scripted_http import InMemory, response
from trioformer.client import ClientOptions, open_client
from trioformer.errors import StatusError
from trioformer.kubeconfig import ClusterConfig, ExecConfig

SERVER = "https://api.test"
SECRET = "s3cret"
V1 = "client.authentication.k8s.io/v1"


async def error_of(config: ClusterConfig, reply: httpx.Response, call: str = "get") -> StatusError:
    transport = InMemory([reply])
    async with open_client(config, http_transport=transport, options=ClientOptions(retries=0)) as client:
        with pytest.raises(StatusError) as caught:
            await CALLS[call](client)
    return caught.value


async def test_a_rejected_credential_is_named_without_its_secret() -> None:
    certificate = {"client_certificate_file": "/pki/c.crt", "client_key_file": "/pki/c.key"}
    for given, text in (
        ({}, "none, so the user is anonymous"),
        ({"token": SECRET}, "token"),
        ({"username": "jane", "password": SECRET}, "user name 'jane' and password"),
        (certificate, "client certificate /pki/c.crt"),
        ({"client_certificate_data": b"x", "client_key_data": b"x", "token": SECRET}, "token and client certificate"),
        # A plugin is not used beside a token, so the error must not send its reader there.
        ({"token": SECRET, "exec": ExecConfig(api_version=V1, command="aws")}, "token"),
    ):
        for code in (401, 403):
            options: dict[str, Any] = dict(given)
            error = await error_of(ClusterConfig(server=SERVER, **options), response(code, "no"))
            assert error.__notes__ == [f"server: {SERVER}; credential: {text}"]
            assert SECRET not in str(error)

"""The classes that a program may make: what they check, and what they show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.kubeconfigs import SERVER, fails
from trioformer.kubeconfig import ClusterConfig, ConfigOverrides, ExecConfig, Impersonation

V1 = "client.authentication.k8s.io/v1"
SECRET = "s3cret"


def test_the_constructor_checks_and_normalizes_the_server() -> None:
    error = fails(lambda: ClusterConfig(server="localhost:8080"))
    assert (error.file, error.key) == (None, "server")
    assert ClusterConfig(server=f"{SERVER}/") == ClusterConfig(server=SERVER, source="code")


@pytest.mark.parametrize("kind", [ClusterConfig, ConfigOverrides])
def test_repr_shows_no_secret(kind: Any) -> None:
    """Neither token, password, key nor plugin arguments.

    client-go: TestConfigStringer
    """
    hidden = {"token": SECRET, "password": SECRET, "client_key_data": SECRET.encode()}
    shown = repr(kind(server=SERVER, ca_data=b"four", proxy_url=f"http://u:{SECRET}@h", **hidden))
    assert SECRET not in shown
    assert shown.count("=<hidden>") == 4
    assert f"server='{SERVER}'" in shown
    assert "proxy_url='http://<hidden>@h'" in shown
    assert "token=None" in repr(kind(server=SERVER))


def test_the_repr_of_a_plugin_shows_no_argument_or_variable() -> None:
    exec_config = ExecConfig(
        api_version=V1, command="aws", args=[SECRET], env={"A": SECRET}, cluster_config={"a": SECRET}
    )
    assert SECRET not in repr(exec_config)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Impersonation(user="jane", groups="devs"),
        lambda: Impersonation(user="jane", extra={"k": "ab"}),
        lambda: ExecConfig(api_version=V1, command="aws", args="eks get-token"),
    ],
)
def test_a_string_in_place_of_several_is_refused(make: Any) -> None:
    """Type checkers take it for a collection of strings."""
    with pytest.raises(TypeError, match="single string"):
        make()


def test_files_may_be_paths() -> None:
    names = ("ca_file", "client_certificate_file", "client_key_file", "token_file")
    given: Any = {name: Path("/pki") / name for name in names}
    for config in (ClusterConfig(server=SERVER, **given), ConfigOverrides(**given)):
        assert [getattr(config, name) for name in names] == [f"/pki/{name}" for name in names]

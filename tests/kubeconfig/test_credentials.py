"""Credential plugins, impersonation and authentication providers in kubeconfigs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.kubeconfigs import SERVER, Write, fails, kubeconfig, load_kubeconfig, with_cluster, with_user
from trioformer.kubeconfig import ClusterConfig, ExecConfig, Impersonation
from trioformer.kubeconfig._config import InteractiveMode

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"
EXTENSION = "client.authentication.k8s.io/exec"


def plugin(**fields: object) -> dict[str, object]:
    return {"apiVersion": V1BETA1, "command": "login"} | fields


def loaded(write: Write, document: object) -> ClusterConfig:
    return load_kubeconfig(write(document))


def problems(write: Write, user: dict[str, object]) -> dict[str, str]:
    """The messages of the problems of a user, by key."""
    error = fails(lambda: load_kubeconfig(write(with_user(**user))))
    return {(problem.key or "").removeprefix("users[dev].user"): problem.message for problem in error.problems}


# ------------------------------------------------------------------------------------------------- credential plugins


def test_all_fields_of_a_credential_plugin_are_loaded(write: Write) -> None:
    """client-go: TestValidateAuthInfoExec"""
    config = loaded(
        write,
        kubeconfig(
            cluster={
                "server": SERVER,
                "extensions": [
                    {"name": "other", "extension": 1},
                    {"name": EXTENSION, "extension": {"audience": "a", "port": 8443, "list": [1.5, None, True]}},
                ],
            },
            user={
                "exec": {
                    "apiVersion": V1,
                    "command": "aws",
                    "args": ["eks", "get-token", "--cluster-name", "c", None],
                    "env": [{"name": "AWS_PROFILE", "value": "dev"}, {"name": "EMPTY"}],
                    "installHint": "install it:\n\tapt install aws é",
                    "interactiveMode": "Never",
                    "provideClusterInfo": True,
                    "unknown": 1,
                }
            },
        ),
    )
    assert config.exec == ExecConfig(
        api_version=V1,
        command="aws",
        args=("eks", "get-token", "--cluster-name", "c", ""),
        env={"AWS_PROFILE": "dev", "EMPTY": ""},
        install_hint="install it:\n\tapt install aws é",
        interactive_mode=InteractiveMode.NEVER,
        provide_cluster_info=True,
        cluster_config={"audience": "a", "port": 8443, "list": [1.5, None, True]},
    )


def test_a_plugin_has_the_defaults_of_kubectl(write: Write) -> None:
    config = loaded(write, with_user(exec=plugin(args=None, env=[], installHint="", provideClusterInfo=None)))
    assert config.exec == ExecConfig(api_version=V1BETA1, command="login")
    assert config.exec.interactive_mode is InteractiveMode.IF_AVAILABLE


@pytest.mark.parametrize(
    ("command", "path"), [("login", "login"), ("../bin/login", "bin/login"), ("~/login", "one/~/login")]
)
def test_a_command_with_a_separator_is_relative_to_its_kubeconfig(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, path: str
) -> None:
    """client-go: TestResolveRelativePaths."""
    write(with_user(exec=plugin(command=command)), "one/config")
    monkeypatch.chdir(tmp_path)
    config = load_kubeconfig(os.path.join("one", "config"))
    assert config.exec is not None
    assert config.exec.command == (str(tmp_path / path) if os.sep in command else path)


def test_an_absolute_command_stays_as_it_is(write: Write) -> None:
    config = loaded(write, with_user(exec=plugin(command="/opt/../bin/login")))
    assert config.exec is not None
    assert config.exec.command == "/opt/../bin/login"


def test_a_plugin_beside_another_credential_is_loaded_and_checked(write: Write) -> None:
    config = loaded(write, with_user(exec=plugin(), token="t"))
    assert config.exec is not None
    assert config.token == "t"
    assert list(problems(write, {"token": "t", "exec": {}})) == [".exec.apiVersion", ".exec.command"]


def test_all_problems_of_a_plugin_are_listed(write: Write) -> None:
    """client-go: TestValidateAuthInfoExecNoCommand, TestValidateAuthInfoExecNoEnv
    client-go: TestValidateAuthInfoExecInteractiveModeInvalid
    """
    exec_config = {
        "apiVersion": V1,
        "args": [1],
        "env": [{"name": "", "value": "x"}],
        "installHint": 5,
        "interactiveMode": "Sometimes",
        "provideClusterInfo": "yes",
    }
    fields = ("command", "args[0]", "env[0].name", "installHint", "interactiveMode", "provideClusterInfo")
    assert set(problems(write, {"exec": exec_config})) == {f".exec.{field}" for field in fields}


@pytest.mark.parametrize(
    ("fields", "key", "words"),
    [
        ({"apiVersion": None}, ".apiVersion", f"must be {V1} or {V1BETA1}"),
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, ".apiVersion", "update the plugin"),
        ({"apiVersion": V1}, ".interactiveMode", "Never, IfAvailable, Always"),
        ({"args": [["a"]]}, ".args[0]", "must be a string"),
        ({"env": ["A=B"]}, ".env[0]", "must be a mapping"),
    ],
)
def test_an_invalid_plugin_is_an_error_with_its_key(
    write: Write, fields: dict[str, object], key: str, words: str
) -> None:
    """client-go: TestValidateAuthInfoExecNoVersion, TestValidateAuthInfoExecInteractiveModeMissing"""
    found = problems(write, {"exec": plugin(**fields)})
    assert list(found) == [f".exec{key}"]
    assert words in found[f".exec{key}"]


def test_an_invalid_extension_is_an_error_if_there_is_a_plugin(write: Write) -> None:
    """client-go: TestDuplicateExtensionName"""
    for extensions in ([{"name": EXTENSION}] * 2, {"name": EXTENSION}):
        cluster = {"server": SERVER, "extensions": extensions}
        error = fails(lambda: loaded(write, kubeconfig(cluster=cluster, user={"exec": plugin()})))  # noqa: B023
        assert error.key == "clusters[dev].cluster.extensions"
        assert loaded(write, kubeconfig(cluster=cluster)).exec is None


@pytest.mark.parametrize("provider", [{"name": "azure", "config": {"access-token": "hidden"}}, {}, "gcp"])
def test_an_authentication_provider_is_an_error_that_says_what_replaced_it(write: Write, provider: object) -> None:
    """client-go: TestValidateAuthInfoExecWithAuthProvider"""
    found = problems(write, {"auth-provider": provider, "token": "t"})
    assert list(found) == [".auth-provider"]
    assert "exec" in found[".auth-provider"]
    assert "hidden" not in found[".auth-provider"]


# ---------------------------------------------------------------------------------------------------- impersonation


def test_impersonation_is_loaded(write: Write) -> None:
    """client-go: TestFullImpersonateConfig, TestValidateAuthInfoImpersonateUser
    client-go: TestValidateAuthInfoImpersonateEverything
    """
    user = {"token": "t", "as": "jane", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"X/y": ["1", "2"]}}
    expected = Impersonation(user="jane", uid="7", groups=("a", "b"), extra={"X/y": ("1", "2")})
    assert loaded(write, with_user(**user)).impersonate == expected
    assert loaded(write, with_user(**{"as": "system:admin"})).impersonate == Impersonation(user="system:admin")


@pytest.mark.parametrize(("field", "value"), [("as-uid", "7"), ("as-groups", ["a"]), ("as-user-extra", {"a": ["b"]})])
def test_impersonation_needs_a_user(write: Write, field: str, value: object) -> None:
    """client-go: TestValidateAuthInfoImpersonateUIDWithoutUserInvalid
    client-go: TestValidateAuthInfoImpersonateGroupsWithoutUserInvalid
    client-go: TestValidateAuthInfoImpersonateExtraWithoutUserInvalid
    """
    assert field in problems(write, {field: value, "token": "t"})[".as"]


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"as-uid": 7}, ".as-uid"),
        ({"as-user-extra": ["a"]}, ".as-user-extra"),
        ({"as-user-extra": {"a": "b"}}, ".as-user-extra.a"),
    ],
)
def test_invalid_impersonation_is_an_error(write: Write, fields: dict[str, object], key: str) -> None:
    assert list(problems(write, {"as": "jane"} | fields)) == [key]


def test_impersonation_and_proxy_stay_for_a_plain_http_server(write: Write) -> None:
    """As in client-go: only what authenticates is left out."""
    cluster = {"server": "http://h", "proxy-url": "http://proxy:3128", "disable-compression": True}
    user = {"token": "t", "as": "jane", "exec": plugin(), "client-certificate-data": "x", "client-key-data": ""}
    path = write(kubeconfig(cluster=cluster, user=user))
    assert "users[dev].user.client-certificate-data" in {p.key for p in fails(lambda: load_kubeconfig(path)).problems}
    path = write(kubeconfig(cluster=cluster, user={"token": "t", "as": "jane", "exec": plugin()}))
    assert load_kubeconfig(path) == ClusterConfig(
        server="http://h",
        impersonate=Impersonation(user="jane"),
        proxy_url="http://proxy:3128",
        disable_compression=True,
        context="dev",
        source=path,
    )


# --- proxies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["http://proxy:3128", "socks5://127.0.0.1:1080", "HTTP://user:p%40ss@[::1]:3128/"])
def test_a_proxy_url_is_loaded_as_it_is(write: Write, url: str) -> None:
    """client-go: TestProxyURL"""
    config = load_kubeconfig(write(with_cluster(**{"proxy-url": url})))
    assert config.proxy_url == url
    assert "user:" not in repr(config)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://u:hidden@proxy",
        "http://u:hidden@",
        "http://h\n",
        5,
    ],
)
def test_an_invalid_proxy_url_is_an_error_that_does_not_quote_it(write: Write, url: object) -> None:
    error = fails(lambda: load_kubeconfig(write(with_cluster(**{"proxy-url": url}))))
    assert error.key == "clusters[dev].cluster.proxy-url"
    assert "hidden" not in str(error)

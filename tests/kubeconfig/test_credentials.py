"""Credential plugins, impersonation and authentication providers in kubeconfigs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.kubeconfigs import SERVER, Write, fails, kubeconfig, with_cluster, with_user
from trioformer.kubeconfig import ClusterConfig, ExecConfig, Impersonation, InteractiveMode, load_kubeconfig

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"
EXTENSION = "client.authentication.k8s.io/exec"
VERSIONS = f"{V1} or {V1BETA1}"
MODES = "Never, IfAvailable, Always"


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
    """client-go: TestValidateAuthInfoExec, TestCreateAuthConfigExecInstallHintCleanup
    client-go: TestCleanANSIEscapeCodes
    """
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
                    "installHint": "install it:\n\tapt \x1b[1minstall aws é",
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
        install_hint="install it:\n\tapt U+001B[1minstall aws é",
        interactive_mode=InteractiveMode.NEVER,
        provide_cluster_info=True,
        cluster_config={"audience": "a", "port": 8443, "list": [1.5, None, True]},
    )


def test_a_plugin_has_the_defaults_of_kubectl(write: Write) -> None:
    config = loaded(write, with_user(exec=plugin(args=None, env=[], installHint="", provideClusterInfo=None)))
    assert config.exec == ExecConfig(api_version=V1BETA1, command="login")
    assert config.exec.interactive_mode is InteractiveMode.IF_AVAILABLE


@pytest.mark.parametrize("mode", InteractiveMode)
@pytest.mark.parametrize("version", [V1, V1BETA1])
def test_the_interactive_mode_of_a_plugin_is_loaded(write: Write, version: str, mode: InteractiveMode) -> None:
    config = loaded(write, with_user(exec=plugin(apiVersion=version, interactiveMode=mode.value)))
    assert config.exec is not None
    assert config.exec.interactive_mode is mode


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("login", "login"),
        ("./login", "one/login"),
        ("../bin/login", "bin/login"),
        ("bin/login", "one/bin/login"),
        ("~/login", "one/~/login"),
    ],
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
    assert problems(
        write,
        {
            "exec": {
                "apiVersion": V1,
                "args": [1],
                "env": [{"name": "", "value": "x"}],
                "installHint": 5,
                "interactiveMode": "Sometimes",
                "provideClusterInfo": "yes",
            }
        },
    ) == {
        ".exec.command": "is missing: it must be the program that prints the credentials",
        ".exec.args[0]": "must be a string, but YAML reads it as an integer: put it in quotes",
        ".exec.env[0].name": "is missing: a variable needs a name",
        ".exec.installHint": "must be a string, but YAML reads it as an integer: put it in quotes",
        ".exec.interactiveMode": f"must be one of {MODES}",
        ".exec.provideClusterInfo": "must be true or false, not a string",
    }


OTHER_VERSION = f"must be {VERSIONS}: update the plugin, and let its program write the kubeconfig again"
NUL = "contains a NUL, which no program can be given"


@pytest.mark.parametrize(
    ("fields", "key", "message"),
    [
        ({"apiVersion": None}, "apiVersion", f"is missing: it must be {VERSIONS}"),
        ({"apiVersion": "v1"}, "apiVersion", OTHER_VERSION),
        (
            {"apiVersion": "client.authentication.k8s.io/v1alpha1"},
            "apiVersion",
            OTHER_VERSION.replace("v1beta1:", "v1beta1, not v1alpha1:"),
        ),
        ({"apiVersion": V1}, "interactiveMode", f"is missing: it must be one of {MODES}"),
        ({"command": "a\0b"}, "command", NUL),
        ({"args": ["a", "b\0"]}, "args", NUL),
        ({"args": "a"}, "args", "must be a list, not a string"),
        ({"args": [["a"]]}, "args[0]", "must be a string, not a list"),
        ({"env": [{"name": "A", "value": "\0"}]}, "env[0].value", NUL),
        ({"env": [{"name": "A=B"}]}, "env[0].name", "contains an = or a NUL, which the name of a variable must not"),
        ({"env": ["A=B"]}, "env[0]", "must be a mapping, not a string"),
        ({"env": {"A": "B"}}, "env", "must be a list, not a mapping"),
    ],
)
def test_an_invalid_plugin_is_an_error_with_its_key(
    write: Write, fields: dict[str, object], key: str, message: str
) -> None:
    """client-go: TestValidateAuthInfoExecNoVersion, TestValidateAuthInfoExecInteractiveModeMissing"""
    assert problems(write, {"exec": plugin(**fields)}) == {f".exec.{key}": message}


def test_a_plugin_that_is_no_mapping_is_an_error(write: Write) -> None:
    assert problems(write, {"exec": "aws"}) == {".exec": "must be a mapping, not a string"}


@pytest.mark.parametrize(
    ("extensions", "key", "message"),
    [
        ([{"name": EXTENSION}] * 2, "extensions", f"has {EXTENSION} twice: remove one of them"),
        ({"name": EXTENSION}, "extensions", "must be a list, not a mapping"),
    ],
)
def test_an_invalid_extension_is_an_error_if_there_is_a_plugin(
    write: Write, extensions: object, key: str, message: str
) -> None:
    """client-go: TestDuplicateExtensionName"""
    cluster = {"server": SERVER, "extensions": extensions}
    error = fails(lambda: load_kubeconfig(write(kubeconfig(cluster=cluster, user={"exec": plugin()}))))
    assert (error.key, error.problems[0].message) == (f"clusters[dev].cluster.{key}", message)
    assert loaded(write, kubeconfig(cluster=cluster)).exec is None


def test_the_repr_of_a_plugin_shows_no_argument_or_variable(write: Write) -> None:
    fields = {"args": ["s3cret"], "env": [{"name": "A", "value": "s3cret"}]}
    assert "s3cret" not in repr(loaded(write, with_user(exec=plugin(**fields))))


# ------------------------------------------------------------------------------------------ authentication providers


GCP = "gcp was removed from kubectl: install gke-gcloud-auth-plugin"


@pytest.mark.parametrize(
    ("provider", "message"),
    [
        (
            {"name": "gcp"},
            f"{GCP}, and run 'gcloud container clusters get-credentials' again",
        ),
        (
            {"name": "azure", "config": {"access-token": "hidden"}},
            "azure was removed from kubectl: install kubelogin, and run 'kubelogin convert-kubeconfig'",
        ),
        (
            {"name": "oidc"},
            "oidc is not supported: use a credential plugin (exec), such as 'kubectl oidc-login get-token'",
        ),
        (
            {"name": "openstack"},
            "openstack was removed from kubectl: use the credential plugin client-keystone-auth (exec)",
        ),
        ({"name": "x"}, "is not supported: use a credential plugin (exec), a token or a client certificate"),
        ({}, "is not supported: use a credential plugin (exec), a token or a client certificate"),
        ("gcp", "must be a mapping, not a string"),
    ],
)
def test_an_authentication_provider_is_an_error_that_says_what_replaced_it(
    write: Write, provider: object, message: str
) -> None:
    """client-go: TestValidateAuthInfoExecWithAuthProvider"""
    assert problems(write, {"auth-provider": provider, "token": "t"}) == {".auth-provider": message}


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
    message = f"is missing, but {field} is set: name the user to impersonate"
    assert problems(write, {field: value, "token": "t"}) == {".as": message}


@pytest.mark.parametrize(
    ("fields", "key", "message"),
    [
        ({"as": "a\nb"}, ".as", "contains a control character, which a header must not"),
        ({"as-uid": 7}, ".as-uid", "must be a string, but YAML reads it as an integer: put it in quotes"),
        ({"as-groups": "a"}, ".as-groups", "must be a list, not a string"),
        ({"as-groups": ["a", "b\r"]}, ".as-groups", "contains a control character, which a header must not"),
        ({"as-user-extra": ["a"]}, ".as-user-extra", "must be a mapping, not a list"),
        ({"as-user-extra": {"a": "b"}}, ".as-user-extra.a", "must be a list, not a string"),
    ],
)
def test_invalid_impersonation_is_an_error(write: Write, fields: dict[str, object], key: str, message: str) -> None:
    assert problems(write, {"as": "jane"} | fields) == {key: message}


def test_impersonation_and_proxy_stay_for_a_plain_http_server(write: Write) -> None:
    """As in client-go: only what authenticates is left out."""
    cluster = {"server": "http://h", "proxy-url": "http://proxy:3128", "disable-compression": True}
    user = {"token": "t", "as": "jane", "exec": plugin(), "client-certificate-data": "x"}
    path = write(kubeconfig(cluster=cluster, user=user))
    assert fails(lambda: load_kubeconfig(path)).problems[0].key == "users[dev].user.client-certificate-data"
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


@pytest.mark.parametrize(
    "url",
    [
        "http://proxy:3128",
        "https://proxy",
        "socks5://127.0.0.1:1080",
        "http://user:p%40ss@[::1]:3128/",
        "HTTP://proxy",
    ],
)
def test_a_proxy_url_is_loaded_as_it_is(write: Write, url: str) -> None:
    """client-go: TestProxyURL"""
    assert load_kubeconfig(write(with_cluster(**{"proxy-url": url}))).proxy_url == url


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("proxy:3128", "must begin with http://, https:// or socks5://"),
        ("socks5h://proxy", "must begin with http://, https:// or socks5://"),
        (
            "http://hidden#1@proxy",
            "has '@' after '/', '?' or '#': percent-encode these in name and password, '#' as %23",
        ),
        ("ftp://u:hidden@proxy", "must begin with http://, https:// or socks5://"),
        ("http://", "has no host: it must be a URL such as 'http://proxy:3128'"),
        ("http://u:hidden@", "has no host: it must be a URL such as 'http://proxy:3128'"),
        ("http://proxy:port", "must be a URL such as 'http://proxy:3128'"),
        ("http://u:hidden@proxy:0", "must be a URL such as 'http://proxy:3128'"),
        ("http://[::1", "must be a URL such as 'http://proxy:3128'"),
        ("http://u:hidden @proxy", "must be a URL such as 'http://proxy:3128'"),
        (5, "must be a string, but YAML reads it as an integer: put it in quotes"),
    ],
)
def test_an_invalid_proxy_url_is_an_error_that_does_not_quote_it(write: Write, url: object, message: str) -> None:
    path = write(with_cluster(**{"proxy-url": url}))
    assert str(fails(lambda: load_kubeconfig(path))) == f"{path}: clusters[dev].cluster.proxy-url: {message}"


def test_the_repr_of_a_configuration_shows_no_password_of_a_proxy(write: Write) -> None:
    config = load_kubeconfig(write(with_cluster(**{"proxy-url": "http://user:s3cret@proxy:3128"})))
    assert "s3cret" not in repr(config)
    assert "@proxy:3128" in repr(config)


def test_compression_is_disabled_by_a_boolean_only(write: Write) -> None:
    assert load_kubeconfig(write(with_cluster(**{"disable-compression": True}))).disable_compression
    error = fails(lambda: load_kubeconfig(write(with_cluster(**{"disable-compression": "true"}))))
    assert error.key == "clusters[dev].cluster.disable-compression"

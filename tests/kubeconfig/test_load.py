"""Kubeconfig files, $KUBECONFIG and the in-cluster service account."""

from __future__ import annotations

import logging
import os
import re
import traceback
from pathlib import Path

import pytest
import yaml

from tests.support.kubeconfigs import (
    SERVER,
    Certificates,
    Pod,
    Write,
    encode,
    fails,
    kubeconfig,
    load_kubeconfig,
    with_cluster,
    with_context,
    with_user,
)
from trioformer import _yaml
from trioformer.kubeconfig import ClusterConfig, load_config

# ------------------------------------------------------------------------------------- the configuration of a context


def test_every_supported_field_is_loaded(write: Write, pems: Certificates) -> None:
    """client-go: TestCreateClean, TestDisableCompression, TestCertificateData
    client-go: TestValidateCleanWithCAClusterInfo, TestValidateCleanTokenAuthInfo
    """
    path = write(
        kubeconfig(
            cluster={
                "server": f"{SERVER}/clusters/c-1/",
                "certificate-authority-data": encode(pems.ca),
                "tls-server-name": "api.internal",
                "insecure-skip-tls-verify": False,
                "disable-compression": True,
                "extensions": [{"name": "x", "extension": {"a": 1}}],
            },
            user={
                "client-certificate-data": encode(pems.certificate),
                "client-key-data": encode(pems.key),
                "token": "secret",
            },
            context={"cluster": "dev", "user": "dev", "namespace": "team-a"},
            preferences={"colors": True},
            unknown=1,
        )
    )
    assert load_kubeconfig(path) == ClusterConfig(
        server=f"{SERVER}/clusters/c-1",
        namespace="team-a",
        ca_data=pems.ca,
        tls_server_name="api.internal",
        disable_compression=True,
        client_certificate_data=pems.certificate,
        client_key_data=pems.key,
        token="secret",
        context="dev",
        source=path,
    )


def test_basic_authentication_is_loaded(write: Write) -> None:
    """client-go: TestBasicAuthData"""
    config = load_kubeconfig(write(with_user(username="admin", password="secret")))
    assert (config.username, config.password) == ("admin", "secret")
    config = load_kubeconfig(write(with_user(username="admin")))
    assert (config.username, config.password) == ("admin", "")


@pytest.mark.parametrize("user", [None, ""])
def test_a_context_without_user_is_anonymous(write: Write, user: object) -> None:
    config = load_kubeconfig(write(with_context(user=user)))
    assert config.token is config.username is config.client_certificate_file is None


def test_empty_and_null_fields_are_absent(write: Write) -> None:
    path = write(
        kubeconfig(
            cluster={
                "server": SERVER,
                "certificate-authority": "",
                "certificate-authority-data": "",
                "insecure-skip-tls-verify": None,
                "proxy-url": "",
                "tls-server-name": None,
            },
            user={
                "token": "",
                "tokenFile": None,
                "username": "",
                "password": "",
                "client-certificate-data": None,
                "exec": None,
                "auth-provider": None,
                "as": "",
                "as-groups": [],
                "as-user-extra": {},
            },
            context={"cluster": "dev", "user": "dev", "namespace": ""},
        )
    )
    assert load_kubeconfig(path) == ClusterConfig(server=SERVER, context="dev", source=path)


def test_entries_without_fields_are_empty(write: Write) -> None:
    """client-go: TestValidateEmptyAuthInfo, TestValidateEmptyClusterInfo"""
    assert load_kubeconfig(write(kubeconfig(users=[{"name": "dev", "user": None}]))).token is None
    error = fails(lambda: load_kubeconfig(write(kubeconfig(clusters=[{"name": "dev"}]))))
    assert error.key == "clusters[dev].cluster.server"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("https://h", "https://h"),
        ("https://h:6443/", "https://h:6443"),
        ("HTTPS://h/k8s/c//", "https://h/k8s/c"),
        ("https://h/k8s?a=b#c", "https://h/k8s"),
        ("https://[::1]:6443/", "https://[::1]:6443"),
        ("http://127.0.0.1:8001", "http://127.0.0.1:8001"),
    ],
)
def test_servers_are_normalised(write: Write, given: str, expected: str) -> None:
    assert load_kubeconfig(write(with_cluster(server=given))).server == expected
    assert ClusterConfig(server=given).server == expected


@pytest.mark.parametrize("server", ["localhost:8080", "[::1]:8080/", "k8s.example"])
def test_a_server_without_a_scheme_is_http_unless_there_are_tls_settings(
    write: Write, pems: Certificates, server: str
) -> None:
    """As in client-go (``DefaultServerURL``)."""
    host = server.rstrip("/")
    write(pems.ca, "ca.crt")
    for none in ({}, {"insecure-skip-tls-verify": False, "certificate-authority": ""}):
        assert load_kubeconfig(write(with_cluster(server=server, **none))).server == f"http://{host}"
    for tls in (
        {"insecure-skip-tls-verify": True},
        {"certificate-authority": "ca.crt"},
        {"certificate-authority-data": encode(pems.ca)},
    ):
        assert load_kubeconfig(write(with_cluster(server=server, **tls))).server == f"https://{host}"


# ------------------------------------------------------------------------------------- tokens


def test_a_token_file_is_read_and_its_path_kept(write: Write) -> None:
    """client-go: TestBasicTokenFile"""
    token_file = write("  from-file\n", "tokens/token")
    config = load_kubeconfig(write(with_user(tokenFile="tokens/token")))
    assert (config.token, config.token_file) == ("from-file", token_file)


def test_a_token_beside_a_token_file_is_used_until_the_file_exists(write: Write, tmp_path: Path) -> None:
    """client-go: TestPrecedenceTokenFile"""
    config = load_kubeconfig(write(with_user(token="fallback", tokenFile="later")))
    assert (config.token, config.token_file) == ("fallback", str(tmp_path / "later"))


def test_credentials_are_omitted_for_a_plain_http_server(
    write: Write, pems: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(
        kubeconfig(
            cluster={"server": "http://h:8080", "certificate-authority-data": encode(pems.ca)},
            user={"token": "secret"},
        )
    )
    with caplog.at_level(logging.WARNING, "trioformer.kubeconfig"):
        assert load_kubeconfig(path) == ClusterConfig(server="http://h:8080", context="dev", source=path)
    assert [path in message and "http://h:8080" in message for message in caplog.messages] == [True]
    assert caplog.records[0].name == "trioformer.kubeconfig"
    caplog.clear()
    load_kubeconfig(write(kubeconfig(cluster={"server": "http://h:8080"})))
    assert caplog.messages == []


# ------------------------------------------------------------------------------------- data and files


def test_a_file_together_with_data_is_an_error(write: Write, pems: Certificates) -> None:
    """As in client-go (``validateClusterInfo``, ``validateAuthInfo``).

    client-go: TestValidateCertDataOverridesFiles
    """
    path = write(
        kubeconfig(
            cluster={
                "server": SERVER,
                "certificate-authority": "/not/there",
                "certificate-authority-data": encode(pems.ca),
            },
            user={
                "client-certificate": "/not/there",
                "client-certificate-data": encode(pems.certificate),
                "client-key": "/not/there",
                "client-key-data": encode(pems.key),
            },
        )
    )
    assert {problem.key for problem in fails(lambda: load_kubeconfig(path)).problems} == {
        "clusters[dev].cluster.certificate-authority",
        "users[dev].user.client-certificate",
        "users[dev].user.client-key",
    }


def test_paths_are_relative_to_their_kubeconfig(
    write: Write, pems: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """client-go: TestResolveRelativePaths, TestValidateCleanCertFilesAuthInfo"""
    write(pems.ca, "one/~/ca.crt")
    write("one-token", "two/secrets/token")
    write(kubeconfig(name="a", cluster={"server": SERVER, "certificate-authority": "~/ca.crt"}, users=[]), "one/config")
    write({"users": [{"name": "a", "user": {"tokenFile": "../two/./secrets/token"}}]}, "two/config")
    monkeypatch.chdir(tmp_path / "one")
    config = load_kubeconfig("config", os.path.join("..", "two", "config"))
    assert config.ca_file == str(tmp_path / "one" / "~" / "ca.crt")  # ~ is a name
    assert (config.token, config.token_file) == ("one-token", str(tmp_path / "two" / "secrets" / "token"))


# ------------------------------------------------------------------------------------- merging


def entry(section: str, name: str, **fields: object) -> dict[str, object]:
    return {"name": name, {"clusters": "cluster", "contexts": "context", "users": "user"}[section]: fields}


def test_the_first_file_with_an_entry_or_a_current_context_wins(write: Write) -> None:
    """client-go: TestConflictingCurrentContext, TestLoadingGetLoadingPrecedence"""
    first = write(kubeconfig(name="a", user={"token": "first"}), "first")
    second = write(
        {
            "current-context": "b",
            "clusters": [entry("clusters", "a", server="https://second", **{"tls-server-name": "second"})],
            "contexts": [
                entry("contexts", "a", cluster="a", user="a", namespace="second"),
                entry("contexts", "b", cluster="a", user="b"),
            ],
            "users": [entry("users", "a", tokenFile="/not/there"), entry("users", "b", token="second")],
        },
        "second",
    )
    config = load_kubeconfig(first, second)
    assert config == ClusterConfig(server=SERVER, token="first", context="a", source=f"{first}, {second}")
    config = load_kubeconfig(second, first)
    assert (config.context, config.server, config.tls_server_name) == ("b", "https://second", "second")
    assert config.token == "second"
    assert load_kubeconfig(first, second, context="b").token == "second"


def test_missing_empty_and_duplicate_files_of_a_list_are_skipped(write: Write, tmp_path: Path) -> None:
    """client-go: TestToleratingMissingFiles, TestDeduplicate, TestLoadingEmptyMaps"""
    empty = write("", "empty")
    path = write(kubeconfig())
    config = load_kubeconfig(str(tmp_path / "missing"), empty, path, path)
    assert config.context == "dev"
    assert config.source == f"{empty}, {path}"


# ------------------------------------------------------------------------------------- entries that are not used


def test_entries_that_the_context_does_not_use_are_not_checked(write: Write) -> None:
    """client-go: TestConfirmUsableBadInfoButOkConfig"""
    document = kubeconfig(
        clusters=[entry("clusters", "dev", server=SERVER), entry("clusters", "eks", **{"proxy-url": "socks5://p"})],
        contexts=[entry("contexts", "dev", cluster="dev", user="dev"), entry("contexts", "lost", cluster="?", user=3)],
        users=[
            entry("users", "dev", token="t"),
            entry("users", "eks", exec={"command": "aws"}, token=1, **{"client-key": "/not/there"}),
        ],
    )
    assert load_kubeconfig(write(document)).token == "t"


def test_entries_without_a_name_are_ignored(write: Write) -> None:
    users = [None, {}, {"name": ""}, {"name": None, "user": {"token": 1}}, entry("users", "dev", token="t")]
    assert load_kubeconfig(write(kubeconfig(users=users))).token == "t"


@pytest.mark.parametrize("other", [{"token": "t"}, {"tokenFile": "token"}, {"username": "u", "password": "p"}])
def test_a_key_without_a_certificate_is_ignored_beside_another_credential(
    write: Write, pems: Certificates, other: dict[str, object]
) -> None:
    write("t", "token")
    expected = load_kubeconfig(write(with_user(**other)))
    for key in ({"client-key-data": encode(pems.key)}, {"client-key-data": "?"}, {"client-key": "not-there"}):
        assert load_kubeconfig(write(with_user(**other, **key))) == expected


# ------------------------------------------------------------------------------------- errors


def check_error(write: Write, document: object, key: str, words: str) -> None:
    path = write(document)
    error = fails(lambda: load_kubeconfig(path))
    assert (error.file, error.key) == (path, key)
    assert str(error).startswith(f"{path}: {key}: ")
    assert words in str(error)
    assert "hidden" not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    ("user", "field", "words"),
    [
        ({"token": "hidden", "username": "u"}, "", "both"),
        ({"password": "hidden"}, ".username", "missing"),
        ({"token": 123456}, ".token", "an int: put it in quotes"),
        ({"username": ["u"]}, ".username", "a list"),
        ({"tokenFile": "/a\0b"}, ".tokenFile", r"'/a\x00b' cannot be read"),
        ({"client-certificate-data": "aGlkZGVu"}, ".client-key", "missing, but client-certificate is set"),
        ({"client-key": "token"}, ".client-certificate", "missing, but client-key is set"),
        ({"client-certificate-data": "YW-_", "client-key": "token"}, ".client-certificate-data", "base64"),
    ],
)
def test_an_invalid_user_is_an_error_with_its_key(
    write: Write, user: dict[str, object], field: str, words: str
) -> None:
    """client-go: TestValidateMultipleMethodsAuthInfo"""
    write("hidden", "token")
    check_error(write, with_user(**user), f"users[dev].user{field}", words)


@pytest.mark.parametrize(
    ("cluster", "field", "words"),
    [
        ({"tls-server-name": 5}, "tls-server-name", "an int: put it in quotes"),
        ({"insecure-skip-tls-verify": "true"}, "insecure-skip-tls-verify", "must be true or false"),
        (
            {"insecure-skip-tls-verify": True, "certificate-authority-data": "aGk="},
            "insecure-skip-tls-verify",
            "excludes",
        ),
        *(
            ({"server": server}, "server", words)
            for server, words in (
                ("", "missing"),
                ("k8s.example/path?x", "not 'k8s.example/path'"),
                ("ftp://k8s.example", "not 'ftp://k8s.example'"),
                ("u:hidden@h", "not a URL with '@'"),
                ("https://h:port?hidden", "not 'https://h:port'"),
                ("https://[::1", "URL"),
                ("https://h\n.example", r"not 'https://h\n.example'"),
                ("https://u:hidden@h", "user name or password"),
                ("https://b\u00fccher.example/x", "ASCII"),
            )
        ),
    ],
)
def test_an_invalid_cluster_is_an_error_with_its_key(
    write: Write, cluster: dict[str, object], field: str, words: str
) -> None:
    write("hidden", "token")
    check_error(write, with_cluster(**cluster), f"clusters[dev].cluster.{field}", words)


@pytest.mark.parametrize(
    ("top", "key", "words"),
    [
        *(
            (
                {"contexts": [{"name": "dev", "context": {"cluster": "dev", **context}}]},
                f"contexts[dev].context.{key}",
                words,
            )
            for context, key, words in (
                ({"cluster": "gone"}, "cluster", "names the cluster 'gone', which does not exist; known clusters: dev"),
                ({"user": "gone"}, "user", "names the user 'gone', which does not exist; known users: dev"),
                ({"cluster": None}, "cluster", "missing"),
                ({"namespace": "No_Label"}, "namespace", "DNS label"),
            )
        ),
        ({"current-context": "gone"}, "current-context", "'gone', which does not exist; known contexts: dev"),
        ({"current-context": None}, "current-context", "is not set, and no context was given; known contexts: dev"),
        ({"users": []}, "contexts[dev].context.user", "known users: none"),
        ({"clusters": {"dev": {}}}, "clusters", "must be a list"),
        ({"contexts": ["dev"]}, "contexts[0]", "must be a mapping"),
        ({"users": [{"name": "a"}, {"name": "a"}]}, "users[a]", "twice"),
        ({"clusters": [{"name": "\n"}, {"name": "\n"}]}, r"clusters['\n']", "twice"),
        ({"kind": "Pod"}, "kind", "'Config'"),
    ],
)
def test_an_invalid_structure_is_an_error_with_its_key(
    write: Write, top: dict[str, object], key: str, words: str
) -> None:
    """client-go: TestDuplicateClusterName, TestDuplicateContextName, TestDuplicateUserName
    client-go: TestValidateMissingCurrentContextConfig, TestConfirmUsableMissingObjects
    client-go: TestValidateMissingReferencesConfig, TestValidateEmptyContext
    """
    check_error(write, kubeconfig(**top), key, words)  # type: ignore[arg-type]  # none of these is one of its keywords


@pytest.mark.parametrize("field", ["certificate-authority", "client-certificate", "client-key", "tokenFile"])
def test_the_error_of_a_file_that_cannot_be_read_names_it(write: Write, tmp_path: Path, field: str) -> None:
    """client-go: TestValidateMissingCAFileClusterInfo, TestValidateCertFilesNotFoundAuthInfo"""
    (tmp_path / "directory").mkdir()
    for name, problem in (("gone", "does not exist"), ("directory", "cannot be read: Is a directory")):
        path = write(with_cluster(**{field: name}) if field == "certificate-authority" else with_user(**{field: name}))
        found = [str(each) for each in fails(lambda: load_kubeconfig(path)).problems]  # noqa: B023  # called here
        # Another one may be that a certificate has no key.
        assert any(f".{field}: file '{tmp_path / name}' {problem}" in each for each in found)


# ------------------------------------------------------------------------------------- all errors at once


def test_one_error_lists_all_problems_of_a_context(write: Write) -> None:
    """client-go: TestConfirmUsableBadInfoConfig"""
    path = write(
        kubeconfig(
            cluster={
                "server": "ftp://h",
                "certificate-authority": "gone",
                "insecure-skip-tls-verify": True,
                "tls-server-name": 7,
            },
            user={
                "client-certificate-data": "?",
                "token": ["hidden"],
                "username": ["u"],
                "password": "hidden",
            },
            context={"cluster": "dev", "user": "dev", "namespace": "No!"},
        )
    )
    error = fails(lambda: load_kubeconfig(path))
    assert {problem.key for problem in error.problems} == {
        "contexts[dev].context.namespace",
        *(
            f"clusters[dev].cluster.{field}"
            for field in ("server", "certificate-authority", "insecure-skip-tls-verify", "tls-server-name")
        ),
        "users[dev].user",
        *(f"users[dev].user.{field}" for field in ("client-certificate-data", "client-key", "token", "username")),
    }
    assert {problem.file for problem in error.problems} == {path}
    assert (error.file, error.key) == (path, None)
    assert str(error).startswith(f"{path}: 10 problems: ")
    assert all(f"{problem.key}: {problem.message}" in str(error) for problem in error.problems)
    assert "hidden" not in "".join(traceback.format_exception(error))


def test_the_error_of_an_unknown_context_lists_the_known_ones_and_names_the_files(write: Write) -> None:
    """client-go: TestCreateMissingContext, TestCreateMissingContextNoDefault"""
    first = write({"users": [entry("users", "x")]}, "first")
    second = write(kubeconfig(**{"current-context": "gone"}), "second")
    assert fails(lambda: load_kubeconfig(first, second)).file == second
    error = fails(lambda: load_kubeconfig(first, second, context="prod"))
    assert error.file == f"{first}{os.pathsep}{second}"
    assert str(error).endswith(": contexts: there is no context 'prod'; known contexts: dev")


def test_one_error_lists_the_problems_of_all_files(write: Write, pod: Pod) -> None:
    wrong, broken = write({"kind": "Pod", "users": [7], "clusters": {}}, "wrong"), write("[", "broken")
    for load in (
        lambda: load_kubeconfig(wrong, write(kubeconfig()), broken),
        lambda: pod.load({"KUBECONFIG": f"{wrong}:{broken}"}),
    ):
        error = fails(load)
        assert (error.file, error.key) == (None, None)
        places = [(problem.file, problem.key) for problem in error.problems]
        assert places == [(wrong, "kind"), (wrong, "clusters"), (wrong, "users[0]"), (broken, None)]


# ------------------------------------------------------------------------------------- files that are not kubeconfigs


@pytest.fixture(params=["CSafeLoader", "SafeLoader"])
def _loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML has a loader in C only with libyaml."""
    monkeypatch.setattr(_yaml, "_LOADER", getattr(yaml, request.param))


@pytest.mark.usefixtures("_loader")
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("users: [", r"not YAML: .*\(line [12], column [19]\)"),
        ("users:\n- user:\n    token: hidden: hidden\n", r"not YAML: .*\(line 3, column 18\)"),
        ("a: b\n--- hidden\n", r"second document.*\(line 2, column 5\)"),
        ("a: b\n---\n---\n", "second document"),
        ("a: !hidden1 b", r"tag.*\(line 1, column 4\)"),
        ("- a\n", "mapping, not a list"),
        ("just text", "mapping, not a str"),
        (b"a: b\nc: hidd\xe9n\n", r"UTF-8.*\(line 2\)"),
    ],
)
def test_a_file_that_is_not_a_kubeconfig_is_an_error(write: Write, content: str | bytes, words: str) -> None:
    """client-go: TestErrorReadingNonFile, TestErrorReadingFile"""
    path = write(content)
    error = fails(lambda: load_kubeconfig(path))
    assert re.search(words, str(error))
    assert (error.file, error.key) == (path, None)
    assert not re.search(r"hidden\b", "".join(traceback.format_exception(error)))


@pytest.mark.parametrize("end", ["---", "--- # nothing\n# more\n", "...\n---\n...\n"])
def test_an_empty_document_may_follow(write: Write, end: str) -> None:
    assert load_kubeconfig(write(f"{yaml.safe_dump(kubeconfig())}\n{end}")).context == "dev"


@pytest.mark.parametrize("content", ["", "# comment\n", "kind: Config\napiVersion: v1\n", "clusters:\nusers: []\n"])
def test_an_explicit_empty_file_is_an_error(write: Write, content: str) -> None:
    """client-go: TestConfirmUsableEmptyConfig, TestValidateEmptyConfig"""
    path = write(content)
    assert str(fails(lambda: load_kubeconfig(path))).startswith(f"{path}: is empty")


def test_an_explicit_file_must_exist(tmp_path: Path) -> None:
    """client-go: TestNonExistentCommandLineFile"""
    path = str(tmp_path / "gone")
    assert str(fails(lambda: load_config(kubeconfig=path, environ={}))) == f"{path}: does not exist"
    assert str(fails(lambda: load_config(kubeconfig="~/x", environ={}))) == "~/x: does not exist; ~ is not expanded"
    assert str(fails(lambda: load_config(kubeconfig="", environ={}))) == "'': does not exist"


# ------------------------------------------------------------------------------------- finding the configuration


def test_in_a_pod_the_service_account_is_used(pod: Pod) -> None:
    """client-go: TestInClusterConfig"""
    expected = ClusterConfig(
        server="https://10.0.0.1:443",
        namespace="pod-namespace",
        ca_file=str(pod.directory / "ca.crt"),
        token="pod-token",
        token_file=str(pod.directory / "token"),
        source="in-cluster",
        in_cluster=True,
    )
    assert pod.load() == expected


@pytest.mark.parametrize(
    ("host", "server"),
    [("fd00::1", "https://[fd00::1]:443"), ("[fd00::1]", "https://[fd00::1]:443"), ("api", "https://api:443")],
)
def test_ipv6_hosts_are_bracketed(pod: Pod, host: str, server: str) -> None:
    assert pod.load_in_cluster(KUBERNETES_SERVICE_HOST=host).server == server


def test_the_pods_namespace_is_that_of_environment_file_or_default(pod: Pod) -> None:
    assert pod.load_in_cluster(POD_NAMESPACE="from-environ").namespace == "from-environ"
    assert pod.load_in_cluster(POD_NAMESPACE="").namespace == "pod-namespace"
    (pod.directory / "namespace").write_text(" \n")
    assert pod.load_in_cluster().namespace == "default"
    (pod.directory / "namespace").unlink()
    assert pod.load_in_cluster().namespace == "default"


def test_an_invalid_namespace_in_a_pod_is_an_error(pod: Pod) -> None:
    assert fails(lambda: pod.load_in_cluster(POD_NAMESPACE="No!")).key == "$POD_NAMESPACE"
    (pod.directory / "namespace").write_text("hidden!")  # the file may be another one, such as the token
    error = fails(pod.load_in_cluster)
    assert error.file == str(pod.directory / "namespace")
    assert "hidden" not in str(error)


def test_without_ca_crt_the_systems_authorities_are_used_with_a_warning(
    pod: Pod, caplog: pytest.LogCaptureFixture
) -> None:
    (pod.directory / "ca.crt").unlink()
    assert pod.load_in_cluster().ca_file is None
    assert [str(pod.directory / "ca.crt") in message for message in caplog.messages] == [True]


def test_an_invalid_service_address_is_an_error(pod: Pod) -> None:
    error = fails(lambda: pod.load_in_cluster(KUBERNETES_SERVICE_PORT="tcp://10.0.0.1:443"))
    assert error.key == "$KUBERNETES_SERVICE_HOST and $KUBERNETES_SERVICE_PORT"


def test_outside_a_pod_in_cluster_configuration_is_an_error(pod: Pod) -> None:
    for variable in ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        assert f"${variable} is not set" in str(fails(lambda: pod.load_in_cluster(**{variable: ""})))  # noqa: B023
    (pod.directory / "token").unlink()
    assert f"'{pod.directory / 'token'}' does not exist" in str(fails(pod.load_in_cluster))
    (pod.directory / "token").mkdir()
    assert f"'{pod.directory / 'token'}' does not exist" in str(fails(pod.load_in_cluster))


def test_the_environment_of_the_process_is_the_default(write: Write, pod: Pod, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("KUBECONFIG", "POD_NAMESPACE"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in pod.environ.items():
        monkeypatch.setenv(variable, value)
    assert load_config(service_account_directory=pod.directory).in_cluster
    monkeypatch.setenv("KUBECONFIG", write(kubeconfig()))
    assert load_config().context == "dev"


def test_an_explicit_file_takes_precedence(write: Write, pod: Pod) -> None:
    write(kubeconfig(name="home"), "home/.kube/config")
    listed = write(kubeconfig(name="listed"), "listed")
    explicit = write(kubeconfig(name="explicit"), "explicit")
    assert pod.load({"KUBECONFIG": listed}, kubeconfig=explicit).context == "explicit"
    assert pod.load({"KUBECONFIG": listed}).context == "listed"
    assert pod.load({"KUBECONFIG": ""}).context == "home"
    assert pod.load().context == "home"
    assert pod.load({"HOME": "", "USERPROFILE": pod.environ["HOME"]}).context == "home"


def test_a_kubeconfig_variable_without_any_file_hides_the_home_directory(
    write: Write, pod: Pod, caplog: pytest.LogCaptureFixture
) -> None:
    """client-go: TestWarningMissingFiles"""
    write(kubeconfig(name="home"), "home/.kube/config")
    with caplog.at_level(logging.DEBUG, "trioformer.kubeconfig"):
        assert pod.load({"KUBECONFIG": "/gone:/lost"}).in_cluster
    tried = "'/gone' (does not exist), '/lost' (does not exist)"
    assert caplog.messages == [
        f"none of the files in $KUBECONFIG exists: {tried}",
        f"using the in-cluster configuration; tried before it: {tried}",
    ]
    assert [record.levelname for record in caplog.records] == ["WARNING", "DEBUG"]


def test_an_invalid_kubeconfig_is_an_error_in_a_pod_too(write: Write, pod: Pod) -> None:
    """client-go: TestInClusterClientConfigPrecedence."""
    wrong = write(kubeconfig(**{"current-context": "gone"}))
    assert fails(lambda: pod.load({"KUBECONFIG": wrong})).key == "current-context"
    for section, key in (("clusters", "cluster"), ("users", "user")):
        dangling = write(kubeconfig(**{section: []}))  # type: ignore[arg-type]  # none of these is one of its keywords
        assert fails(lambda: pod.load({"KUBECONFIG": dangling})).key == f"contexts[dev].context.{key}"  # noqa: B023
    broken = write("[")
    assert fails(lambda: pod.load({"KUBECONFIG": broken})).file == broken


@pytest.mark.parametrize(
    "document",
    [kubeconfig(**{"current-context": ""}), {"users": [entry("users", "dev")]}],
)
def test_in_a_pod_a_kubeconfig_without_current_context_is_not_used(
    write: Write, pod: Pod, document: object, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(document)
    for config in (pod.load({"KUBECONFIG": path}), pod.load(kubeconfig=path)):
        assert config.in_cluster
    assert caplog.messages == [f"using the in-cluster configuration: {path} has no current-context"] * 2
    outside = {"HOME": pod.environ["HOME"], "KUBECONFIG": path}
    assert fails(lambda: load_config(environ=outside)).key == "current-context"
    assert fails(lambda: load_kubeconfig(path)).key == "current-context"


def test_in_a_pod_an_empty_kubeconfig_is_not_used(write: Write, pod: Pod, caplog: pytest.LogCaptureFixture) -> None:
    empty = write("", "empty")
    with caplog.at_level(logging.DEBUG, "trioformer.kubeconfig"):
        assert pod.load({"KUBECONFIG": empty}).in_cluster
        assert pod.load(kubeconfig=empty).in_cluster
    assert caplog.messages == [f"using the in-cluster configuration; tried before it: '{empty}' (is empty)"] * 2
    assert fails(lambda: pod.load(kubeconfig=empty, context="dev")).file == empty


def test_in_a_pod_a_context_without_namespace_gets_the_pods(write: Write, pod: Pod) -> None:
    """client-go: TestInClusterConfigNamespace"""
    path = write(kubeconfig())
    assert pod.load(kubeconfig=path).namespace == "pod-namespace"
    assert pod.load({"KUBECONFIG": path}).namespace == "pod-namespace"
    assert pod.load({"POD_NAMESPACE": "from-environ"}, kubeconfig=path).namespace == "from-environ"
    explicit = write(with_context(namespace="default"), "explicit")
    assert pod.load(kubeconfig=explicit).namespace == "default"
    assert load_kubeconfig(path).namespace == "default"
    outside = {"POD_NAMESPACE": "from-environ"}
    assert load_config(kubeconfig=path, environ=outside).namespace == "default"


def test_the_error_without_a_configuration_lists_what_was_tried(write: Write, pod: Pod, tmp_path: Path) -> None:
    home, empty = str(tmp_path / "home"), write("", "empty")
    for environ, tried in (
        ({"HOME": home}, f"'{home}/.kube/config' (does not exist), in-cluster ($KUBERNETES_SERVICE_HOST is not set)"),
        ({"KUBECONFIG": f"/gone:{empty}"}, f"'/gone' (does not exist), '{empty}' (is empty), in-cluster"),
        ({"KUBECONFIG": ":"}, "$KUBECONFIG (is an empty list), in-cluster"),
        ({}, "~/.kube/config ($HOME is not set), in-cluster"),
    ):
        error = fails(lambda: load_config(environ=environ, service_account_directory=pod.directory))  # noqa: B023
        assert str(error).startswith(f"no cluster configuration found; tried {tried}")
    (pod.directory / "token").unlink()
    assert str(fails(pod.load)).endswith(f"in-cluster ('{pod.directory}/token' does not exist)")


def test_a_context_is_not_searched_in_the_service_account(pod: Pod) -> None:
    """client-go: TestConfirmUsableMissingConfig"""
    error = fails(lambda: pod.load({"KUBECONFIG": "/gone:/lost"}, context="prod"))
    tried = "'/gone' (does not exist), '/lost' (does not exist)"
    assert str(error) == f"no kubeconfig with context 'prod' found; tried {tried}"

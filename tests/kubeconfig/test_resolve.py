"""Values that replace those of a kubeconfig, and what each clears."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from tests.support.kubeconfigs import SERVER, Certificates, Pod, Write, encode, fails, kubeconfig
from trioformer.kubeconfig import ClusterConfig, ConfigOverrides, Impersonation, load_config

OTHER = "https://other.example"


@attrs.frozen
class Loaded:
    """Loads one kubeconfig with other values."""

    path: str

    def __call__(self, context: str | None = None, **overrides: object) -> ClusterConfig:
        changed = ConfigOverrides(**overrides)  # type: ignore[arg-type]  # the caller knows their types
        return load_config(kubeconfig=self.path, context=context, overrides=changed, environ={})

    def changes(self, **overrides: object) -> dict[str, object]:
        """The fields that differ from those without the overrides."""
        before = load_config(kubeconfig=self.path, environ={})
        after = self(**overrides)
        fields = [field.name for field in attrs.fields(ClusterConfig)]
        return {name: getattr(after, name) for name in fields if getattr(after, name) != getattr(before, name)}


@pytest.fixture
def with_data(write: Write, pems: Certificates) -> Loaded:
    """A kubeconfig with certificates as data, and a name of the server."""
    return Loaded(
        write(
            kubeconfig(
                cluster={
                    "server": SERVER,
                    "certificate-authority-data": encode(pems.ca),
                    "tls-server-name": "internal",
                    "proxy-url": "http://proxy",
                },
                user={
                    "client-certificate-data": encode(pems.certificate),
                    "client-key-data": encode(pems.key),
                    "as": "jane",
                    "as-groups": ["admins"],
                },
            )
        )
    )


def test_without_any_value_overrides_change_nothing(with_data: Loaded) -> None:
    """client-go: TestCreateCleanDefault"""
    empty = {
        "server": "",
        "token": "",
        "ca_data": b"",
        "insecure_skip_tls_verify": False,
        "namespace": None,
        "ca_file": "",
    }
    assert with_data.changes(**empty) == {}


def test_a_server_clears_the_name_of_the_server(with_data: Loaded) -> None:
    """client-go: TestTLSServerName, TestTLSServerNameClearsWhenServerNameSet"""
    assert with_data.changes(server=OTHER) == {"server": OTHER, "tls_server_name": None}
    both = {"server": OTHER, "tls_server_name": "x"}
    assert with_data.changes(**both) == both
    assert with_data.changes(tls_server_name="x") == {"tls_server_name": "x"}


def test_insecure_clears_the_authorities(with_data: Loaded, write: Write) -> None:
    """client-go: TestInsecureOverridesCA."""
    insecure = {"insecure_skip_tls_verify": True}
    assert with_data.changes(**insecure) == {"ca_data": None, **insecure}
    with_file = Loaded(write(kubeconfig(cluster={"server": SERVER, "certificate-authority": "/gone"})))
    assert with_file(**insecure).ca_file is None


def test_an_authority_clears_the_other_authorities_and_insecure(
    with_data: Loaded, write: Write, pems: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """client-go: TestCAOverridesCAData."""
    file = write(pems.ca, "ca.crt")
    monkeypatch.chdir(tmp_path)
    assert with_data.changes(ca_file="ca.crt") == {"ca_data": None, "ca_file": file}
    insecure = Loaded(write(kubeconfig(cluster={"server": SERVER, "insecure-skip-tls-verify": True}), "insecure"))
    changes = {"ca_data": pems.ca, "insecure_skip_tls_verify": False}
    assert insecure.changes(ca_data=pems.ca) == changes
    with_file = Loaded(write(kubeconfig(cluster={"server": SERVER, "certificate-authority": file}), "file"))
    assert with_file.changes(ca_data=pems.ca) == {"ca_data": pems.ca, "ca_file": None}


def test_certificate_and_key_replace_both_forms(with_data: Loaded, write: Write, pems: Certificates) -> None:
    """client-go: TestClientCertOverrideData."""
    certificate, key = write(pems.certificate, "c.pem"), write(pems.key, "k.pem")
    assert with_data.changes(client_certificate_file=certificate, client_key_file=key) == {
        "client_certificate_data": None,
        "client_certificate_file": certificate,
        "client_key_data": None,
        "client_key_file": key,
    }
    only_key = {"client_key_data": None, "client_key_file": key}
    assert with_data.changes(client_key_file=key) == only_key


def test_a_token_replaces_token_and_token_file(write: Write) -> None:
    file = write("from-file", "token")
    with_file = Loaded(write(kubeconfig(user={"tokenFile": "token"})))
    assert with_file.changes(token="t") == {"token": "t", "token_file": None}
    with_token = Loaded(write(kubeconfig(user={"token": "t"}), "other"))
    assert with_token.changes(token_file=Path(file)) == {"token": "from-file", "token_file": file}
    both = {"token": "x", "token_file": "/later"}
    assert with_token.changes(**both) == both


def test_the_other_values_are_replaced_one_by_one(with_data: Loaded) -> None:
    """client-go: TestMergeSemantics, TestAuthConfigMerge, TestNamespaceOverride"""
    assert with_data.changes(namespace="team") == {"namespace": "team"}
    other = {"proxy_url": "socks5://proxy", "disable_compression": True, "username": "u", "password": "p"}
    assert with_data.changes(**other) == other


def test_another_cluster_and_user_of_the_kubeconfig_are_named(write: Write) -> None:
    """client-go: TestMergeContext"""
    document = kubeconfig(
        clusters=[{"name": name, "cluster": {"server": f"https://{name}"}} for name in ("dev", "prod")],
        users=[{"name": name, "user": {"token": name}} for name in ("dev", "admin")],
    )
    loaded = Loaded(write(document))
    assert loaded.changes(cluster="prod") == {"server": "https://prod"}
    assert loaded.changes(user="admin") == {"token": "admin"}
    assert loaded.changes(cluster="prod", user="admin") == {"server": "https://prod", "token": "admin"}
    without_context = Loaded(write(document | {"current-context": "", "contexts": []}, "other"))
    config = without_context(cluster="prod", user="admin")
    assert (config.server, config.token, config.context) == ("https://prod", "admin", None)


def test_errors_about_overrides_name_them_and_no_file(with_data: Loaded) -> None:
    error = fails(lambda: with_data(cluster="gone", user="gone", namespace="No!", proxy_url="x://u:hidden@h"))
    keys = [f"overrides.{name}" for name in ("cluster", "user", "namespace", "proxy_url")]
    assert [(problem.file, problem.key) for problem in error.problems] == [(None, key) for key in keys]
    assert "names the cluster 'gone', which does not exist; known clusters: dev" in str(error)
    error = fails(lambda: with_data(server="x", ca_file="/gone", proxy_url="x://u:hidden@h"))
    assert [problem.key for problem in error.problems] == ["overrides.proxy_url", "overrides.ca_file"]
    assert "hidden" not in str(error)


def test_values_contradict_each_other_as_in_a_kubeconfig(with_data: Loaded, pems: Certificates) -> None:
    keys = [p.key for p in fails(lambda: with_data(insecure_skip_tls_verify=True, ca_data=pems.ca)).problems]
    assert keys == ["overrides.insecure_skip_tls_verify"]
    keys = [p.key for p in fails(lambda: with_data(ca_file="/gone", ca_data=pems.ca)).problems]
    assert keys == ["overrides.ca_file"]
    keys = [p.key for p in fails(lambda: with_data(token="t", username="u")).problems]
    assert keys == ["users[dev].user"]


def test_with_a_server_no_kubeconfig_is_needed(tmp_path: Path, pod: Pod) -> None:
    """client-go: TestCreateCleanDefaultCluster"""
    overrides = ConfigOverrides(server=SERVER, token="t", namespace="n")
    expected = ClusterConfig(server=SERVER, token="t", namespace="n", source="overrides")
    assert load_config(overrides=overrides, environ={"HOME": str(tmp_path)}) == expected
    assert pod.load(overrides=overrides) == expected


def test_in_a_pod_values_replace_those_of_the_service_account(pod: Pod, write: Write, pems: Certificates) -> None:
    """client-go: TestInClusterClientConfigPrecedence."""
    before = pod.load()

    def changes(**overrides: object) -> dict[str, object]:
        after = pod.load(overrides=ConfigOverrides(**overrides))  # type: ignore[arg-type]  # as above
        names = [field.name for field in attrs.fields(ClusterConfig)]
        return {name: getattr(after, name) for name in names if getattr(after, name) != getattr(before, name)}

    assert changes() == {}
    assert changes(token="t") == {"token": "t", "token_file": None}
    file = write("other", "other-token")
    assert changes(token_file=file) == {"token": "other", "token_file": file}
    assert changes(ca_data=pems.ca) == {"ca_file": None, "ca_data": pems.ca}
    assert changes(namespace="team") == {"namespace": "team"}
    bob = Impersonation(user="bob")
    assert changes(impersonate=bob) == {"impersonate": bob}
    key = fails(lambda: pod.load(overrides=ConfigOverrides(namespace="No!"))).key
    assert key == "overrides.namespace"

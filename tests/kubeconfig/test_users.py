"""What a program gives to the constructors: a wrong type is refused, with what to write."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest

from trioformer.kubeconfig import ClusterConfig, ConfigOverrides, ExecConfig, Impersonation, load_config

SERVER = "https://api.test"
SECRET = "s3cret"
V1 = "client.authentication.k8s.io/v1"


def variables_below(error: BaseException) -> str:
    """The local variables of the frames of an error, but for that of the test."""
    shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    return str([frame.locals for frame in shown.stack[1:]])


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"groups": "devs"}, "groups must be a list or tuple of strings, not a single string; write [text]"),
        ({"groups": b"devs"}, "groups must be a list or tuple of strings, not a bytes"),
        ({"groups": None}, "groups must be a list or tuple of strings, not None"),
        ({"groups": ["a", 1]}, "groups must be a list or tuple of strings, but has an int"),
        ({"extra": {"k": "ab"}}, "extra['k'] must be a list or tuple of strings, not a single string; write [text]"),
        ({"extra": {1: ["a"]}}, "the keys of extra must be strings, but one is an int"),
        ({"extra": ["a"]}, "extra must be a mapping of strings to lists of strings, not a list"),
        ({"user": None}, "user must be a string, not None"),
        ({"uid": 7}, "uid must be a string, not an int"),
    ],
)
def test_an_impersonation_of_other_types_is_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError) as caught:
        Impersonation(**{"user": "jane", **given})
    assert str(caught.value) == text


def test_groups_and_extra_may_be_lists() -> None:
    impersonation = Impersonation(user="jane", groups=["a"], extra={"k": ["b"]})
    assert (impersonation.groups, impersonation.extra) == (("a",), {"k": ("b",)})


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"args": SECRET}, "args must be a list or tuple of strings, not a single string; write [text]"),
        ({"args": ["x", None]}, "args must be a list or tuple of strings, but has None"),
        ({"env": [("NAME", SECRET)]}, "env must be a mapping of strings to strings, not a list"),
        ({"env": {"NAME": [SECRET]}}, "the values of env must be strings, but one is a list"),
        ({"command": ["aws", SECRET]}, "command must be a string, not a list"),
        ({"provide_cluster_info": "false"}, "provide_cluster_info must be True or False, not a str"),
    ],
)
def test_a_plugin_of_other_types_is_refused_without_its_secrets(given: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError) as caught:
        ExecConfig(**{"api_version": V1, "command": "aws", **given})
    assert str(caught.value) == text
    assert SECRET not in variables_below(caught.value)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"ca_data": SECRET}, "ca_data must be bytes, not a str; write text.encode()"),
        ({"client_key_data": SECRET}, "client_key_data must be bytes, not a str; write text.encode()"),
        ({"ca_file": b"/ca"}, "a file must be given by its path, not as a bytes"),
        ({"token": SECRET.encode()}, "token must be a string, not a bytes"),
        ({"namespace": 7}, "namespace must be a string, not an int"),
        ({"server": 7}, "server must be a string, not an int"),
        ({"insecure_skip_tls_verify": "false"}, "insecure_skip_tls_verify must be True or False, not a str"),
        ({"impersonate": "jane"}, "impersonate must be an Impersonation, not a str; write Impersonation(user=…)"),
    ],
)
@pytest.mark.parametrize("kind", [ClusterConfig, ConfigOverrides])
def test_a_field_of_another_type_is_refused_without_its_value(kind: Any, given: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError) as caught:
        kind(**{"server": SERVER, **given})
    assert str(caught.value) == text
    assert SECRET not in variables_below(caught.value)


def test_a_mapping_is_no_plugin() -> None:
    wrong: Any = {"command": "aws"}
    with pytest.raises(TypeError, match=r"^exec must be an ExecConfig, not a dict; write ExecConfig\(api_version=…"):
        ClusterConfig(server=SERVER, exec=wrong)


def test_files_may_be_paths() -> None:
    names = ("ca_file", "client_certificate_file", "client_key_file", "token_file")
    given: Any = {name: Path("/pki") / name for name in names}
    for config in (ClusterConfig(server=SERVER, **given), ConfigOverrides(**given)):
        assert [getattr(config, name) for name in names] == [f"/pki/{name}" for name in names]


def test_overrides_are_no_mapping() -> None:
    wrong: Any = {"namespace": "shop"}
    with pytest.raises(
        TypeError, match=r"^overrides must be a ConfigOverrides, not a dict; write ConfigOverrides\(…\)$"
    ):
        load_config(overrides=wrong, environ={})

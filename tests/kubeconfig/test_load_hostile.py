"""Files that wait, do not end, or are too large; and errors whose tracebacks print the variables of each frame."""

from __future__ import annotations

import base64
import inspect
import os
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import trio
import yaml

from trioformer import _yaml
from trioformer.errors import ConfigError
from trioformer.kubeconfig import ClusterConfig, load_config

SECRET = "s3cret"
ENCODED = base64.b64encode(b"s3cret" * 3).decode()  # what is decoded may be shown too
PEM = "-----BEGIN {0}-----\ns3cret\n-----END {0}-----\n"


def encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def document(*, cluster: object = None, user: object = None, context: object = None, **top: object) -> str:
    return yaml.safe_dump(
        {
            "current-context": "a",
            "clusters": [{"name": "a", "cluster": {"server": "https://h"} if cluster is None else cluster}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"} if context is None else context}],
            "users": [{"name": "a", "user": user}],
        }
        | top,
        width=10_000,
    )


def error_of(load: Callable[[], object]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load()
    return caught.value


# ---------------------------------------------------------------------------------------- files that are not regular


LOADS: list[Callable[[Path], ClusterConfig]] = [
    lambda path: load_config(kubeconfig=path),
    lambda path: load_config(environ={"KUBECONFIG": f"/gone:{path}"}),
]


@pytest.mark.parametrize("load", LOADS)
async def test_a_kubeconfig_that_is_a_fifo_is_read_where_a_thread_may_wait(
    load: Callable[[Path], ClusterConfig], tmp_path: Path
) -> None:
    path = tmp_path / "config"
    os.mkfifo(path)
    with pytest.raises(ConfigError, match=r"FIFO.*open_client\(kubeconfig=…\)"):
        load(path)
    configs = []
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            content = document(cluster={"server": "https://h"}).encode()
            nursery.start_soon(partial(trio.to_thread.run_sync, path.write_bytes, content, abandon_on_cancel=True))
            configs.append(await trio.to_thread.run_sync(load, path, abandon_on_cancel=True))
    assert [config.server for config in configs] == ["https://h"]


IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


# ---------------------------------------------------------------------------------------------- secrets in tracebacks


def shown_by(error: BaseException) -> str:
    """All that may be printed of an error: its text, its attributes, and the variables of the library's frames."""
    found = traceback.TracebackException.from_exception(error, capture_locals=True)
    found.stack[:] = [frame for frame in found.stack if frame.filename != __file__]
    return "\n".join([*found.format(), repr(error), repr(vars(error))])


def test_what_a_traceback_shows_is_found() -> None:
    error = error_of(lambda: inspect.unwrap(load_config)(kubeconfig="/gone", context=SECRET))
    assert f"context = '{SECRET}'" in shown_by(error)


EXEC = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "login"}

USERS: list[object] = [
    {"token": [SECRET]},
    {"token": {SECRET: SECRET}},
    {"token": SECRET, "username": "u", "password": SECRET},
    {"token": SECRET, "tokenFile": 5, "as": f"{SECRET}\n", "as-uid": f"{SECRET}\0", "as-groups": SECRET},
    {"as": "jane", "as-user-extra": {"a": SECRET}},
    {"exec": {**EXEC, "args": [SECRET, {SECRET: SECRET}], "env": [{"name": "A", "value": SECRET}, {"value": SECRET}]}},
    {"exec": {**EXEC, "apiVersion": SECRET, "interactiveMode": SECRET}},
    {"token": SECRET, "auth-provider": {"name": SECRET, "config": {"access-token": SECRET}}},
    {"client-key-data": ENCODED},
    {"client-certificate-data": encode(PEM.format("CERTIFICATE")), "client-key-data": f"{SECRET}!"},
    SECRET,
]


@pytest.mark.parametrize("user", USERS, ids=str)
def test_no_traceback_shows_a_credential_of_a_user(user: object, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(document(user=user))
    check_hidden(error_of(lambda: load_config(environ={"KUBECONFIG": str(path)})))


def check_hidden(error: ConfigError) -> None:
    assert error.__cause__ is error.__context__ is None  # which have frames, too
    shown = shown_by(error)
    for secret in (SECRET, SECRET.upper(), ENCODED[:20], encode(PEM.format("CERTIFICATE"))[:60], "czNjcmV0"):
        assert secret not in shown


DOCUMENTS: list[str] = [
    document(cluster={"server": f"https://u:{SECRET}@h"}),
    document(cluster={"server": f"https://h:port/?token={SECRET}"}),
    document(cluster={"server": [SECRET]}),
    document(cluster={"server": "https://h", "certificate-authority-data": SECRET}),
    document(cluster={"server": "https://h", "proxy-url": f"http://u:{SECRET}@h:port"}),
    document(cluster={"server": "https://h", "extensions": {SECRET: SECRET}}, user={"exec": EXEC}),
    document(user={"token": SECRET}, context={"cluster": "gone", "user": "a"}),
    document(user={"token": SECRET}, **{"current-context": "gone"}),
    document(users=[{"name": "a", "user": {"token": SECRET}}] * 2),
    document(kind=SECRET, apiVersion=[SECRET]),
    SECRET,
    f"password: !{SECRET}",
    f'password: "{SECRET}',
    f"password: {SECRET}\npassword: {SECRET}",
    f"password: {SECRET}\n---\npassword: {SECRET}",
    f"%TAG !{SECRET} {SECRET}\n---\n",
]


@pytest.mark.parametrize("loader", ["CSafeLoader", "SafeLoader"])
def test_no_traceback_shows_what_is_in_a_kubeconfig(
    loader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_yaml, "_LOADER", getattr(yaml, loader))
    path = tmp_path / "config"
    for text in DOCUMENTS:
        path.write_text(text)
        check_hidden(error_of(lambda: load_config(kubeconfig=path, environ={})))


def test_no_traceback_shows_bytes_that_are_not_text(tmp_path: Path) -> None:
    for content in (f"password: {SECRET}\xe9".encode("latin-1"), f"\xff\xfe{SECRET}x".encode("latin-1")):
        (tmp_path / "config").write_bytes(content)
        check_hidden(error_of(lambda: load_config(kubeconfig=tmp_path / "config", environ={})))


def test_no_traceback_shows_a_credential_of_a_service_account(tmp_path: Path) -> None:
    environ = IN_POD | {"POD_NAMESPACE": "A", "PASSWORD": SECRET}
    (tmp_path / "token").write_text(SECRET)
    load = lambda: load_config(environ=hidden, service_account_directory=tmp_path)  # noqa: E731

    class Hidden(dict[str, str]):
        """The caller's argument is a variable of the first frame."""

        def __repr__(self) -> str:
            return "<hidden>"

    hidden = Hidden(environ)
    check_hidden(error_of(load))


def test_no_traceback_shows_the_environment_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "gone"))
    check_hidden(error_of(load_config))


@pytest.mark.parametrize("server", ["h", f"https://u:{SECRET}@h", "https://h:port"])
def test_no_traceback_shows_the_arguments_of_a_configuration(server: str) -> None:
    error = error_of(
        lambda: ClusterConfig(server=server, token=SECRET, password=SECRET, client_key_data=SECRET.encode())
    )
    check_hidden(error)
    assert error.key == "server"


def test_no_traceback_shows_the_arguments_of_a_misspelt_configuration() -> None:
    with pytest.raises(TypeError, match="tokn") as caught:
        ClusterConfig(server="https://h", tokn=SECRET)  # type: ignore[call-arg]  # the mistake
    assert SECRET not in shown_by(caught.value)

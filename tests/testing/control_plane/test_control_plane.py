"""A control plane starts, restarts and stops its programs, here scripts in place of the real ones."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import trio

from tests.support.processes import ROOT
from trioformer import open_client
from trioformer.models.core_v1 import Node
from trioformer.testing import ControlPlane
from trioformer.testing.control_plane import _process
from trioformer.testing.control_plane._control_plane import ControlPlaneError

OPTIONS = """#!{python}
import sys
sys.path.insert(0, {root!r})
options = dict(each[2:].split("=", 1) for each in sys.argv[1:])
"""
API_SERVER = (
    OPTIONS
    + """
import trio
from functools import partial
from trioformer.testing import APIServer, serve_http

node = {{"apiVersion": "v1", "kind": "Node", "metadata": {{"name": "node-1"}}}}
node["status"] = {{"conditions": [{{"type": "Ready", "status": "True"}}]}}
server = APIServer(defaults=False)
server.create(node)
files = {{"certificate": options["tls-cert-file"], "key": options["tls-private-key-file"]}}
trio.run(partial(serve_http, server, "127.0.0.1:" + options["secure-port"], **files))
"""
)
READY = (
    OPTIONS
    + """
import http.server, ssl

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.end_headers()

def option(*names):
    return next(options[name] for name in names if name in options)

port = option("listen-client-urls", "secure-port", "server-address").rpartition(":")[2]
tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
tls.load_cert_chain(option("cert-file", "tls-cert-file"), option("key-file", "tls-private-key-file"))
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
server.socket = tls.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""
)
PROGRAMS = {"etcd": READY, "kube-apiserver": API_SERVER, "kube-controller-manager": READY, "kwok": READY}
TAKEN = """#!/bin/sh
mkdir tried && echo "bind: address already in use" && exit 1
exec {next} "$@"
"""


def write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def assets(tmp_path: Path) -> Path:
    """A directory with a script for each program."""
    directory = tmp_path / "assets"
    directory.mkdir()
    for name, text in PROGRAMS.items():
        write(directory / name, text.format(python=sys.executable, root=str(ROOT)))
    (directory / "kwok.yaml").touch()
    return directory


async def test_all_programs_run_in_the_block(assets: Path) -> None:
    control_plane = ControlPlane(assets=assets, controller_manager=True, nodes=["node-1"])
    with pytest.raises(RuntimeError, match="has not been started"):
        _ = control_plane.kubeconfig
    with trio.fail_after(60):
        async with control_plane:
            processes = control_plane.process_ids
            assert [*processes] == ["etcd", "kube-apiserver", "kube-controller-manager", "kwok"]
            async with open_client(kubeconfig=control_plane.kubeconfig) as client:
                assert [node.name for node in await client.api(Node).list()] == ["node-1"]
    assert control_plane.process_ids == {}
    for pid in processes.values():
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert not control_plane.directory.exists()
    with pytest.raises(RuntimeError, match="only once"):
        await control_plane.__aenter__()
    with pytest.raises(RuntimeError, match="is not running"):
        _ = control_plane.url


async def test_programs_are_started_again_at_their_addresses(assets: Path, tmp_path: Path) -> None:
    with trio.fail_after(60):
        async with ControlPlane(assets=assets, directory=tmp_path / "data") as control_plane:
            before = (control_plane.url, control_plane.etcd_url)
            with pytest.raises(RuntimeError, match="already running"):
                await control_plane.start_api_server()
            await control_plane.stop_api_server()
            assert [*control_plane.process_ids] == ["etcd"]
            await control_plane.start_api_server()
            await control_plane.kill_etcd()
            assert [*control_plane.process_ids] == ["kube-apiserver"]
            await control_plane.start_etcd()
            await control_plane.kill_api_server()
            await control_plane.start_api_server()
            assert (control_plane.url, control_plane.etcd_url) == before
            async with open_client(kubeconfig=control_plane.kubeconfig) as client:
                assert await client.api(Node).get("node-1")
    assert (tmp_path / "data" / "kubeconfig").exists()


async def test_another_port_is_tried_when_it_was_taken(assets: Path, tmp_path: Path) -> None:
    (assets / "etcd").rename(assets / "real")
    write(assets / "etcd", TAKEN.format(next=assets / "real"))
    with trio.fail_after(60):
        async with ControlPlane(assets=assets, directory=tmp_path / "data") as control_plane:
            assert "already in use" in (control_plane.log_directory / "etcd.log").read_text()
            assert "etcd" in repr(control_plane)


async def test_the_end_of_a_program_is_an_error_with_its_log(assets: Path, tmp_path: Path) -> None:
    write(assets / "etcd", "#!/bin/sh\necho the disk is full\nexit 3\n")
    with pytest.raises(ControlPlaneError, match="the disk is full") as caught:
        await ControlPlane(assets=assets, directory=tmp_path / "data").__aenter__()
    assert (caught.value.process, caught.value.exit_code) == ("etcd", 3)
    assert caught.value.log == tmp_path / "data" / "logs" / "etcd.log"


async def test_a_program_must_become_ready(assets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_process, "START_DEADLINE", 0.5)
    write(assets / "etcd", "#!/bin/sh\necho $$ > pid\nexec sleep 1000\n")
    with pytest.raises(ControlPlaneError, match="etcd was not ready"):
        await ControlPlane(assets=assets, directory=tmp_path / "data").__aenter__()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "data" / "pid").read_text()), 0)


async def test_missing_programs_are_named_before_anything_is_started(assets: Path) -> None:
    (assets / "kwok.yaml").unlink()
    with pytest.raises(ControlPlaneError, match=r"no file kwok\.yaml"):
        await ControlPlane(assets=assets, nodes=["node-1"]).__aenter__()
    (assets / "kwok").unlink()
    (assets / "kube-controller-manager").unlink()
    with pytest.raises(ControlPlaneError, match="kube-controller-manager or kwok"):
        await ControlPlane(assets=assets, controller_manager=True, nodes=["node-1"]).__aenter__()

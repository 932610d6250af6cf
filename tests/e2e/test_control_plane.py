from __future__ import annotations

import base64
import os
import socket
import ssl
import stat
import subprocess
from collections.abc import Iterable
from pathlib import Path

import httpx
import pytest
import trio
import yaml

from tests.support.processes import running
from trioformer.testing.control_plane._control_plane import ControlPlane, ControlPlaneError

NAMESPACES = "/api/v1/namespaces"


def client_of(control_plane: ControlPlane, tmp_path: Path, *, with_certificate: bool = True) -> httpx.AsyncClient:
    """A bare HTTP client, made from nothing but the kubeconfig file."""
    config = yaml.safe_load(control_plane.kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    if with_certificate:
        pair = tmp_path / "pair.pem"
        pair.write_bytes(b"".join(base64.b64decode(user[f"client-{part}-data"]) for part in ("certificate", "key")))
        tls.load_cert_chain(pair)
    return httpx.AsyncClient(verify=tls, trust_env=False, base_url=cluster["server"], timeout=20)


async def names(client: httpx.AsyncClient) -> list[str]:
    response = await client.get(NAMESPACES)
    response.raise_for_status()
    return [item["metadata"]["name"] for item in response.json()["items"]]


async def create_namespace(client: httpx.AsyncClient, name: str) -> None:
    (await client.post(NAMESPACES, json={"metadata": {"name": name}})).raise_for_status()


def processes_that_name(path: Path) -> list[str]:
    """The command lines, of all processes of this machine, that mention `path`."""
    listed = subprocess.run(["ps", "-A", "-ww", "-o", "args="], check=True, capture_output=True, text=True)
    return [line for line in listed.stdout.splitlines() if str(path) in line]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def open_ports(urls: Iterable[str]) -> list[str]:
    found = []
    for url in urls:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", httpx.URL(url).port)) == 0:
                found.append(url)
    return found


async def test_the_kubeconfig_gives_an_administrator_of_a_ready_server(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with client_of(control_plane, tmp_path) as client:
        assert str(client.base_url).rstrip("/") == control_plane.url
        assert (await client.get("/readyz")).text == "ok"
        assert "default" in await names(client)
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        response = await client.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json=review)
        assert "system:masters" in response.json()["status"]["userInfo"]["groups"]
    assert stat.S_IMODE(control_plane.kubeconfig.stat().st_mode) == 0o600


async def test_without_the_client_certificate_nothing_opens(control_plane: ControlPlane, tmp_path: Path) -> None:
    async with client_of(control_plane, tmp_path, with_certificate=False) as client:
        assert (await client.get(NAMESPACES)).status_code == 403
        with pytest.raises(httpx.TransportError):
            await client.get(f"{control_plane.etcd_url}/health")


async def test_a_killed_api_server_comes_back_at_its_address_with_its_data(
    breakable_control_plane: ControlPlane, tmp_path: Path
) -> None:
    control_plane = breakable_control_plane
    url, before = control_plane.url, control_plane.process_ids
    async with client_of(control_plane, tmp_path) as client:
        await create_namespace(client, "survives-the-api-server")

        await control_plane.kill_api_server()
        assert control_plane.process_ids == {"etcd": before["etcd"]}
        assert not is_running(before["kube-apiserver"])
        with pytest.raises(httpx.ConnectError):
            await client.get("/readyz")
        await control_plane.kill_api_server()  # it is dead already: nothing to do

        await control_plane.start_api_server()
        assert control_plane.url == url
        assert "survives-the-api-server" in await names(client)
        with pytest.raises(RuntimeError, match="kube-apiserver is already running"):
            await control_plane.start_api_server()


async def test_stopping_the_api_server_ends_its_watches_cleanly(
    breakable_control_plane: ControlPlane, tmp_path: Path
) -> None:
    control_plane = breakable_control_plane
    async with client_of(control_plane, tmp_path) as client:
        async with (
            client.stream("GET", f"{NAMESPACES}?watch=1&resourceVersion=0") as watch,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(control_plane.stop_api_server)
            async for _ in watch.aiter_raw():
                pass
        assert list(control_plane.process_ids) == ["etcd"]
        await control_plane.start_api_server()
        assert "default" in await names(client)


async def test_a_killed_etcd_comes_back_with_its_data(breakable_control_plane: ControlPlane, tmp_path: Path) -> None:
    control_plane = breakable_control_plane
    async with client_of(control_plane, tmp_path) as client:
        await create_namespace(client, "survives-etcd")
        before = control_plane.process_ids

        await control_plane.kill_etcd()
        assert not is_running(before["etcd"])
        assert open_ports([control_plane.etcd_url]) == []

        await control_plane.start_etcd()
        assert control_plane.process_ids["kube-apiserver"] == before["kube-apiserver"]
        assert "survives-etcd" in await names(client)


async def test_leaving_stops_exactly_what_was_started(control_plane: ControlPlane, assets: Path) -> None:
    others = control_plane.process_ids
    async with ControlPlane(assets=assets) as second:
        directory, urls, pids = second.directory, [second.url, second.etcd_url], second.process_ids
        assert len(pids) == 2
        assert open_ports(urls) == urls
        assert len(processes_that_name(directory)) == 2
        assert not set(urls) & {control_plane.url, control_plane.etcd_url}

    assert processes_that_name(directory) == []
    assert not any(is_running(pid) for pid in pids.values())
    assert open_ports(urls) == []
    assert not directory.exists()
    assert second.process_ids == {}
    assert control_plane.process_ids == others
    with pytest.raises(RuntimeError, match="inside its async with"):
        await second.start_api_server()
    with pytest.raises(RuntimeError, match="only once"):
        async with second:
            pass


async def test_leaving_stops_everything_though_cancelled(assets: Path) -> None:
    with trio.CancelScope() as scope:
        async with ControlPlane(assets=assets) as control_plane:
            directory = control_plane.directory
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert processes_that_name(directory) == []
    assert not directory.exists()


async def test_nothing_outlives_a_python_that_is_killed(assets: Path, tmp_path: Path) -> None:
    program = f"""
import trio
from trioformer.testing import ControlPlane

async def main():
    async with ControlPlane(assets={str(assets)!r}, directory={str(tmp_path)!r}) as control_plane:
        print(*control_plane.process_ids.values())
        await trio.sleep_forever()

trio.run(main)
"""
    async with running("-c", program) as python:
        await python.wait_for(lambda lines: bool(lines))
        handles = [os.pidfd_open(int(pid)) for pid in python.lines[0].split()]
        assert len(handles) == 2
        python.process.kill()
        with trio.fail_after(5):
            for handle in handles:
                await trio.lowlevel.wait_readable(handle)
                os.close(handle)
    assert processes_that_name(tmp_path) == []


async def test_a_cancelled_start_leaves_no_process(assets: Path, tmp_path: Path) -> None:
    with trio.move_on_after(1) as scope:
        async with ControlPlane(assets=assets, directory=tmp_path):
            raise AssertionError("a control plane is not ready within a second")
    assert scope.cancelled_caught
    assert (tmp_path / "logs" / "etcd.log").exists()
    assert processes_that_name(tmp_path) == []


async def test_a_given_directory_is_kept_and_its_data_continued(assets: Path, tmp_path: Path) -> None:
    directory = tmp_path / "plane"
    async with ControlPlane(assets=assets, directory=directory) as first, client_of(first, tmp_path) as client:
        await create_namespace(client, "continued")
    assert {path.name for path in (directory / "logs").iterdir()} == {"etcd.log", "kube-apiserver.log"}
    async with ControlPlane(assets=assets, directory=directory) as second, client_of(second, tmp_path) as client:
        assert "continued" in await names(client)


async def test_a_program_that_ends_early_is_named_with_its_log(assets: Path) -> None:
    with pytest.raises(ControlPlaneError) as caught:
        async with ControlPlane(assets=assets, api_server_flags=["--no-such-flag"]) as control_plane:
            raise AssertionError(f"{control_plane} started")
    error = caught.value
    assert (error.process, error.exit_code) == ("kube-apiserver", 1)
    assert error.log is not None
    assert "kube-apiserver ended with exit code 1 before it was ready" in error.message
    assert str(error.log) in error.message
    assert "unknown flag: --no-such-flag" in error.__notes__[0]
    # What the error names is kept for the reader, even in a temporary directory; here the reader cleans up.
    assert "unknown flag: --no-such-flag" in error.log.read_text()
    directory = error.log.parents[1]
    assert processes_that_name(directory) == []
    for path in sorted(directory.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    directory.rmdir()


async def test_missing_programs_are_named_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ControlPlaneError, match=r"cannot find etcd or kube-apiserver in .*KUBEBUILDER_ASSETS"):
        async with ControlPlane(assets=tmp_path, directory=tmp_path / "unused"):
            raise AssertionError("started from nothing")
    assert not (tmp_path / "unused").exists()
    with pytest.raises(RuntimeError, match="async with"):
        _ = ControlPlane(assets=tmp_path).kubeconfig

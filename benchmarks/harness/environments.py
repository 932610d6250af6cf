"""The rivals' virtual environments and the Go program: one table of pinned versions, built under ``.cache/bench``."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[1]
REPOSITORY = BENCHMARKS.parent
CACHE = REPOSITORY / ".cache" / "bench"
SOURCE = CACHE / "source"

# What a rival needs comes with it, in the newest version that it allows on the day the environment is made.
OURS = (
    "trio==0.35.0",
    "httptools==0.9.0",
    "httpx==0.28.1",
    "attrs==26.1.0",
    "cattrs==26.2.1",
    "msgspec==0.22.0",
    "PyYAML==6.0.3",
    "wsproto==1.3.2",
)
PINNED: Mapping[str, tuple[str, ...]] = {
    "trioformer": OURS,
    "trioformer_aio": (*OURS, "uvloop==0.23.0"),
    "trioformer_sync": OURS,
    "limit": OURS,
    "trio": OURS[:1],
    "kubernetes": ("kubernetes==37.0.2",),
    "kubernetes_aio": ("kubernetes==37.0.2",),
    "kubernetes_asyncio": ("kubernetes-asyncio==36.1.0",),
    "lightkube": ("lightkube==1.0.1",),
    "lightkube_async": ("lightkube==1.0.1",),
    "kr8s": ("kr8s==0.20.15",),
    "kubex": ("kubex[aiohttp,k8s-1-36]==0.1.0b3", "kubex-core==0.1.0b3", "kubex-k8s-1-36==0.1.0b3"),
    "kubesdk": ("kubesdk==0.3.4",),
    "kopf": ("kopf==1.45.2",),
    "kopf_uvloop": ("kopf==1.45.2", "uvloop==0.23.0"),
    "bombs": (*OURS, "prometheus-client==0.26.0"),
    "servers": (*OURS, "trustme==1.2.1"),
    "plot": ("matplotlib==3.10.7",),
}
CLIENT_GO = "v0.36.3"
CONTROLLER_RUNTIME = "v0.24.1"


class UnavailableError(Exception):
    """A rival cannot be set up here; the message is one line."""


def python_of(name: str) -> Path:
    """Make the environment ``name`` unless it is there, and return its interpreter.

    Raises:
        UnavailableError: pip could not install what is pinned.
    """
    wanted = PINNED[name]
    directory = CACHE / "venvs" / name
    python = directory / "bin" / "python"
    stamp = directory / "installed"
    expected = "\n".join((sys.version, *wanted))
    if stamp.exists() and stamp.read_text() == expected:
        return python
    print(f"{name}: installing {' '.join(wanted)}", flush=True)
    shutil.rmtree(directory, ignore_errors=True)
    run([sys.executable, "-m", "venv", str(directory)])
    run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted])
    stamp.write_text(expected)
    return python


def copy_source() -> None:
    """Copy trioformer as it is now to where the drivers import it from, so that a run measures one state of it."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(REPOSITORY / "trioformer", SOURCE / "trioformer", ignore=shutil.ignore_patterns("__pycache__"))


def go_program(name: str) -> Path:
    """Build the Go program in the directory ``name`` unless it is built already.

    Raises:
        UnavailableError: There is no Go, or it could not build the program.
    """
    source = BENCHMARKS / name
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(source.iterdir()))).hexdigest()
    program = CACHE / name / digest[:16]
    if not program.exists():
        if shutil.which("go") is None:
            raise UnavailableError("go is not on PATH")
        print(f"{name}: building", flush=True)
        environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
        run(["go", "build", "-mod=readonly", "-trimpath", "-o", str(program), "."], cwd=source, env=environment)
    return program


def control_plane() -> Path:
    """Build etcd and kube-apiserver as the end-to-end tests do, and return their directory.

    Raises:
        UnavailableError: They could not be built.
    """
    if given := os.environ.get("KUBEBUILDER_ASSETS"):
        return Path(given)
    command = [sys.executable, str(REPOSITORY / "tests" / "e2e" / "build.py"), "etcd", "kube-apiserver"]
    return Path(run(command).splitlines()[-1])


def installed(name: str, package: str) -> str:
    """The version of a package in an environment, for the report."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return run([str(python_of(name)), "-c", code]).strip()


def run(command: list[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Run a program and return what it printed.

    Raises:
        UnavailableError: It failed; the last line of what it said tells why.
    """
    done = subprocess.run(
        command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        last = [line for line in done.stdout.splitlines() if line.strip()][-1:] or ["it said nothing"]
        raise UnavailableError(f"{Path(command[0]).name} failed: {last[0].strip()}")
    return done.stdout

"""Build the programs of a real control plane for the end-to-end tests.

::

    python tests/e2e/build.py                            # etcd, kube-apiserver, kubectl
    python tests/e2e/build.py kube-controller-manager    # only the named programs

The versions are those of ``control_plane/go.mod`` and ``etcd/go.mod`` beside this file.
The programs land in ``.cache/control-plane/<version>/`` under the repository's root; the environment variable
``TRIOFORMER_E2E_CACHE`` replaces ``.cache/control-plane``.
The directory is the last line printed, to be used as ``KUBEBUILDER_ASSETS``.

With cold caches kube-apiserver takes minutes; what is already built from the same module files is not built again.
Needs the Go toolchain and, the first time, its module proxy; no C compiler.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
ERROR_LINES = 20


class Program(NamedTuple):
    """One program: the folder that holds its go.mod, and the package to build."""

    module: str
    package: str


PROGRAMS = {
    "etcd": Program("etcd", "go.etcd.io/etcd/server/v3"),
    "kube-apiserver": Program("control_plane", "k8s.io/kubernetes/cmd/kube-apiserver"),
    "kubectl": Program("control_plane", "k8s.io/kubernetes/cmd/kubectl"),
    "kube-controller-manager": Program("control_plane", "k8s.io/kubernetes/cmd/kube-controller-manager"),
}
DEFAULT = ("etcd", "kube-apiserver", "kubectl")


def kubernetes_version() -> str:
    """Return the version that go.mod pins, such as ``v1.36.3``."""
    go_mod = (HERE / "control_plane" / "go.mod").read_text()
    found = re.search(r"^(?:require )?\s*k8s\.io/kubernetes (v\S+)", go_mod, re.MULTILINE)
    if found is None:
        raise SystemExit("error: control_plane/go.mod does not require k8s.io/kubernetes")
    return found[1]


def directory() -> Path:
    """Return where the programs are, or will be when they are built."""
    root = os.environ.get("TRIOFORMER_E2E_CACHE") or REPOSITORY / ".cache" / "control-plane"
    return Path(root).absolute() / kubernetes_version()


def missing(names: tuple[str, ...] = DEFAULT) -> list[str]:
    """Return those of the named programs that are not built from today's module files."""
    return [name for name in names if not _is_built(name, directory())]


def build(name: str, target: Path) -> None:
    """Build one program into `target`, and stamp it with what it was built from.

    Raises:
        SystemExit: The build failed; the text holds the end of what Go said.
    """
    program = PROGRAMS[name]
    fresh = target / f".{name}.{os.getpid()}"
    command = ["go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", _linker_flags()]
    done = subprocess.run(
        [*command, "-o", str(fresh), program.package],
        cwd=HERE / program.module,
        env={**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        fresh.unlink(missing_ok=True)
        raise SystemExit(
            "\n".join([f"error: go build {program.package} failed", *done.stdout.splitlines()[-ERROR_LINES:]])
        )
    # The stamp goes last: a program without its stamp is built again.
    fresh.replace(target / name)
    _stamp(name, target).write_text(_fingerprint(name))


def main(names: tuple[str, ...]) -> None:
    """Build the named programs where they are missing, and print their directory last.

    Raises:
        SystemExit: A name is unknown, Go is not installed, or a build failed.
    """
    if unknown := [name for name in names if name not in PROGRAMS]:
        raise SystemExit(f"error: unknown program {', '.join(unknown)}; known are {', '.join(PROGRAMS)}")
    target = directory()
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        if _is_built(name, target):
            print(f"{name}: already built (0.0 s)", flush=True)
            continue
        if shutil.which("go") is None:
            raise SystemExit(
                "error: go is not on PATH; install the Go toolchain (https://go.dev/dl) to build the control plane"
            )
        print(f"{name}: building from {PROGRAMS[name].package} ... ", end="", flush=True)
        began = time.monotonic()
        build(name, target)
        print(f"done ({time.monotonic() - began:.1f} s)", flush=True)
    print(target)


def _linker_flags() -> str:
    version = kubernetes_version()
    major, minor = version.removeprefix("v").split(".")[:2]
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    # The first says what a program is, the second is its User-Agent.
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return " ".join(
        ["-s -w", *(f"-X {package}.{key}={value}" for package in packages for key, value in stamps.items())]
    )


def _fingerprint(name: str) -> str:
    program = PROGRAMS[name]
    digest = hashlib.sha256(f"{program.package} {_linker_flags()}".encode())
    for file in ("go.mod", "go.sum"):
        digest.update((HERE / program.module / file).read_bytes())
    return digest.hexdigest()


def _stamp(name: str, target: Path) -> Path:
    return target / f".{name}.stamp"


def _is_built(name: str, target: Path) -> bool:
    stamp = _stamp(name, target)
    return (target / name).is_file() and stamp.is_file() and stamp.read_text() == _fingerprint(name)


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or DEFAULT)

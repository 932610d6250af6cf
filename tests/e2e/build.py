"""Build the programs of a real control plane for the end-to-end tests.

::

    python tests/e2e/build.py                          # all of them but kube-scheduler, which only nox -s foreign runs
    python tests/e2e/build.py etcd kube-apiserver      # only the named programs

The versions are those of ``control_plane/go.mod``, ``etcd/go.mod`` and ``kwok/go.mod`` beside this file.
The environment variable ``TRIOFORMER_E2E_KUBERNETES``, such as ``v1.34.4``, names another version of Kubernetes.
``recovery-client-go`` and ``retries-client-go`` are no part of a control plane: clients, which ``test_recovery.py`` and
``test_retries.py`` compare with.
Nor are ``clientcmd-client-go``, which says what client-go makes of kubeconfigs (``test_kubeconfig_client_go.py``),
``proxy-environment-go``, which says what Go makes of HTTPS_PROXY and the like (``test_proxy_environment.py``),
``protobuf-go``, which fills every kind with random values (``test_protobuf_random.py``), and ``embedded-go``, which
has the checks of ``test_embedded_go.py`` and the webhooks of ``test_embedded_webhooks.py``.
The programs land in ``.cache/control-plane/<version>/`` under the repository's root, and beside kwok the stages of its
nodes and pods, ``kwok.yaml``; the environment variable ``TRIOFORMER_E2E_CACHE`` replaces ``.cache/control-plane``.
The directory is the last line printed, to be used as ``KUBEBUILDER_ASSETS``.

With cold caches kube-apiserver takes minutes; what is already built from the same module files is not built again.
Needs the Go toolchain and, the first time, its module proxy; no C compiler.
"""

from __future__ import annotations

import functools
import hashlib
import json
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
NO_GO = "error: go is not on PATH; install the Go toolchain (https://go.dev/dl) to build the control plane"


class Program(NamedTuple):
    """One program: the folder that holds its go.mod, the package to build, and which stages of its module it needs.

    The stages that lie in the folder itself are added to those.
    """

    module: str
    package: str
    stages: tuple[str, ...] = ()

    @property
    def is_pinned(self) -> bool:
        return self.module != "control_plane" or kubernetes_version() == pinned_version()

    @property
    def folder(self) -> Path:
        return HERE / self.module if self.is_pinned else directory() / "module"

    @property
    def own_stages(self) -> list[Path]:
        return sorted(self.folder.glob("*.yaml"))

    @property
    def own_sources(self) -> list[Path]:
        """Return the Go files of a program whose package is the folder itself."""
        return sorted(self.folder.glob("*.go")) if self.package == "." else []


PROGRAMS = {
    "etcd": Program("etcd", "go.etcd.io/etcd/server/v3"),
    "kube-apiserver": Program("control_plane", "k8s.io/kubernetes/cmd/kube-apiserver"),
    "kubectl": Program("control_plane", "k8s.io/kubernetes/cmd/kubectl"),
    "kube-controller-manager": Program("control_plane", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    "kube-scheduler": Program("control_plane", "k8s.io/kubernetes/cmd/kube-scheduler"),
    "kwok": Program(
        "kwok",
        "sigs.k8s.io/kwok/cmd/kwok",
        (
            "kustomize/stage/node/fast/node-initialize.yaml",
            "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
            "kustomize/stage/pod/fast/pod-ready.yaml",
            "kustomize/stage/pod/fast/pod-complete.yaml",
            "kustomize/stage/pod/chaos/pod-container-running-failed.yaml",
        ),
    ),
    "clientcmd-client-go": Program("clientcmd_client_go", "."),
    "embedded-go": Program("embedded_go", "."),
    "recovery-client-go": Program("recovery_client_go", "."),
    "protobuf-go": Program("protobuf_go", "."),
    "proxy-environment-go": Program("proxy_environment_go", "."),
    "retries-client-go": Program("retries_client_go", "."),
}
ALL = tuple(name for name in PROGRAMS if name != "kube-scheduler")


def kubernetes_version() -> str:
    """Return the version to build, such as ``v1.36.3``."""
    return os.environ.get("TRIOFORMER_E2E_KUBERNETES") or pinned_version()


@functools.cache
def pinned_version() -> str:
    """Return the version that go.mod pins."""
    go_mod = (HERE / "control_plane" / "go.mod").read_text()
    found = re.search(r"^(?:require )?\s*k8s\.io/kubernetes (v\S+)", go_mod, re.MULTILINE)
    if found is None:
        raise SystemExit("error: control_plane/go.mod does not require k8s.io/kubernetes")
    return found[1]


def directory() -> Path:
    """Return where the programs are, or will be when they are built."""
    root = os.environ.get("TRIOFORMER_E2E_CACHE") or REPOSITORY / ".cache" / "control-plane"
    return Path(root).absolute() / kubernetes_version()


def write_module(folder: Path) -> None:
    """Write the module of a version of Kubernetes that ``control_plane/go.mod`` does not pin.

    It is the go.mod of that version, where each module of the staging folder is the one published with this version.
    Go checks the downloads by its checksum database.

    Raises:
        SystemExit: The version does not look like one, or Go cannot download it.
    """
    version = kubernetes_version()
    if re.fullmatch(r"v1\.\d+\.\d+", version) is None:
        raise SystemExit(f"error: TRIOFORMER_E2E_KUBERNETES is {version!r}, not a version such as v1.34.4")
    if shutil.which("go") is None:
        raise SystemExit(NO_GO)
    folder.mkdir(parents=True, exist_ok=True)
    downloaded = json.loads(_go(folder, "mod", "download", "-json", f"k8s.io/kubernetes@{version}"))
    text = Path(downloaded["GoMod"]).read_text()
    text = text.replace("module k8s.io/kubernetes\n", f"module control-plane\n\nrequire k8s.io/kubernetes {version}\n")
    text = re.sub(r"\./staging/src/(\S+)", rf"\1 {version.replace('v1.', 'v0.')}", text)
    shutil.copy(HERE / "control_plane" / "tools.go", folder)
    (folder / "go.mod").write_text(text)


def missing(names: tuple[str, ...] = ALL) -> list[str]:
    """Return those of the named programs that are not built from today's module files."""
    return [name for name in names if not _is_built(name, directory())]


def build(name: str, target: Path) -> None:
    """Build one program into `target`, and stamp it with what it was built from.

    Raises:
        SystemExit: The build failed; the text holds the end of what Go said.
    """
    program = PROGRAMS[name]
    fresh = target / f".{name}.{os.getpid()}"
    try:
        flags = ("-trimpath", "-buildvcs=false", "-ldflags", _linker_flags(), "-o", str(fresh))
        # go.sum is written as Go goes along for a version that is not pinned.
        _go(program.folder, "build", f"-mod={'readonly' if program.is_pinned else 'mod'}", *flags, program.package)
        # The stamp goes last: a program without its stamp is built again.
        fresh.replace(target / name)
    finally:
        fresh.unlink(missing_ok=True)
    if program.stages:
        listed = _go(program.folder, "list", "-mod=readonly", "-find", "-f", "{{.Module.Dir}}", program.package)
        root = Path(listed.splitlines()[-1])
        stages = [*(root / stage for stage in program.stages), *program.own_stages]
        (target / f"{name}.yaml").write_text("---\n".join(stage.read_text() for stage in stages))
    _stamp(name, target).write_text(_fingerprint(name))


def _go(folder: Path, command: str, *arguments: str) -> str:
    """Run one of Go's commands in a folder, and return what it says."""
    done = subprocess.run(
        ["go", command, *arguments],
        cwd=folder,
        env={**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = done.stdout.splitlines()[-ERROR_LINES:]
        raise SystemExit("\n".join([f"error: go {command} {arguments[-1]} in {folder} failed", *said]))
    return done.stdout


def main(names: tuple[str, ...]) -> None:
    """Build the named programs where they are missing, and print their directory last.

    Raises:
        SystemExit: A name is unknown, Go is not installed, or a build failed.
    """
    if unknown := [name for name in names if name not in PROGRAMS]:
        raise SystemExit(f"error: unknown program {', '.join(unknown)}; known are {', '.join(PROGRAMS)}")
    target = directory()
    target.mkdir(parents=True, exist_ok=True)
    if not PROGRAMS["kubectl"].is_pinned and not (target / "module" / "go.mod").exists():
        write_module(target / "module")
    for name in names:
        if _is_built(name, target):
            print(f"{name}: already built (0.0 s)", flush=True)
            continue
        if shutil.which("go") is None:
            raise SystemExit(NO_GO)
        print(f"{name}: building {PROGRAMS[name].package} of {PROGRAMS[name].module} ... ", end="", flush=True)
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
    digest = hashlib.sha256(" ".join([program.package, _linker_flags(), *program.stages]).encode())
    modules = [program.folder / "go.mod", program.folder / "go.sum"] if program.is_pinned else []
    for file in (*modules, *program.own_stages, *program.own_sources):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _stamp(name: str, target: Path) -> Path:
    return target / f".{name}.stamp"


def _is_built(name: str, target: Path) -> bool:
    stamp = _stamp(name, target)
    return (target / name).is_file() and stamp.is_file() and stamp.read_text() == _fingerprint(name)


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or ALL)

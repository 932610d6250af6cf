"""Nothing that Linux alone has is needed for an informer; and what informers need raises no warning."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import trustme

from tests.support.processes import ROOT

HIDE = """
import os, select, signal, sys
import httpx, msgspec, trio  # these, and the standard library, know where they run

MODULES = ["fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"]
for name in MODULES:
    sys.modules.pop(name, None)

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())

for module, names in {
    os: "O_CLOEXEC O_DIRECTORY O_NOCTTY O_NOFOLLOW O_NONBLOCK chown fchmod fork forkpty fstatvfs getegid geteuid "
    "getgid getpgid getpgrp getuid killpg memfd_create mkfifo openpty pidfd_open sched_getaffinity setsid statvfs",
    select: "poll",
    signal: "SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGSTOP SIGUSR1 SIGWINCH",
}.items():
    for name in names.split():
        vars(module).pop(name, None)

def refuse_proc(event, arguments):
    if event == "open" and str(arguments[0]).startswith("/proc"):
        raise FileNotFoundError(2, "No such file or directory", arguments[0])

sys.addaudithook(refuse_proc)
"""
IMPORT_ALL = """
import importlib, pkgutil
import trioformer
for module in pkgutil.iter_modules(trioformer.__path__, "trioformer."):
    importlib.import_module(module.name)
    print(module.name)
"""
INFORMER = """
import json, pathlib, trio
from functools import partial
from trioformer import SharedInformerFactory, open_client
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, serve_http

PLUGIN = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "command": sys.executable,
    "args": ["-c", "print(" + repr(json.dumps({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "secret"}
    })) + ")"],
    "interactiveMode": "Never",
}

async def main():
    server = APIServer()
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        home = os.environ["USERPROFILE"]
        tls = {"certificate": f"{home}/server.pem", "key": f"{home}/server.key"}
        url = await nursery.start(partial(serve_http, server, token="secret", **tls))
        kubeconfig = pathlib.Path(home, ".kube", "config")
        kubeconfig.parent.mkdir()
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(json.dumps({
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
            "clusters": [{"name": "here", "cluster": {"server": url, "certificate-authority": "../ca.pem"}}],
            "users": [{"name": "me", "user": {"exec": PLUGIN}}],
        }))
        async with open_client() as client:
            factory = SharedInformerFactory(client)
            pods = factory.informer(Pod)
            await nursery.start(factory.run)
            await pods.wait_until_at_least(server.create(Pod(metadata=ObjectMeta(name="web-0"))))
            print([pod.name for pod in pods.lister])
            nursery.cancel_scope.cancel()

trio.run(main)
"""
POD_LOGGER = ("examples/pod_logger.py", "--embedded", "--no-time", "--for=1")
RUN_POD_LOGGER = f"""
import runpy
sys.argv = {list(POD_LOGGER)}
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def run_python(*arguments: str, **variables: str) -> str:
    """Run a fresh interpreter in the repository; return its standard output when all has gone well."""
    environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "KUBECONFIG")}
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment | variables,
        timeout=60,
        check=False,
    )
    print(done.stderr)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_an_informer_and_a_plugin_run_without_what_only_linux_has(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    certificate = authority.issue_cert("127.0.0.1")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "server.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "server.key")
    assert run_python("-c", HIDE + INFORMER, USERPROFILE=str(tmp_path)) == "['web-0']\n"


def test_the_pod_logger_runs_without_what_only_linux_has(tmp_path: Path) -> None:
    program = tmp_path / "hidden.py"
    program.write_text(f"{HIDE}\nsys.path[:0] = {[str(ROOT), 'examples']}\n{RUN_POD_LOGGER}")
    assert "New Pod Added to Store: " in run_python(str(program))


def test_all_packages_can_be_imported_without_what_only_linux_has() -> None:
    assert "trioformer.client\n" in run_python("-c", HIDE + IMPORT_ALL)


def test_terminals_and_copies_say_that_they_are_not_supported() -> None:
    for name in ("interact", "copy_to_pod"):
        use = f"""
try:
    from trioformer.pods import {name}
except ImportError as exc:
    print(exc)
"""
        assert run_python("-c", HIDE + use).endswith("are not supported on Windows\n")


def test_the_pod_logger_raises_no_warning() -> None:
    assert "New Pod Added to Store: " in run_python("-W", "error", "-X", "dev", *POD_LOGGER)

"""What ``nox -s package`` does with the installed wheel, as a user's first program and first test do.

::

    python -I tests/project/smoke.py             # in an environment without extras: each missing one is named
    python -I tests/project/smoke.py testing     # the pytest plugin
    python -I tests/project/smoke.py all         # everything

It imports nothing of this repository: only what is installed.
"""

from __future__ import annotations

import importlib
import pkgutil
import signal
import subprocess
import sys
import tempfile
from importlib import metadata, resources
from pathlib import Path

import trio

import trioformer
from trioformer import SharedInformerFactory
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import Pod
from trioformer.testing import APIServer, serve_http

NEEDS_EXTRA = {"metrics"}
"""The packages that cannot be imported without an extra."""
TEST = """
from trioformer.models.core_v1 import Namespace

async def test_the_fixtures_work(autojump_clock, api_server, k8s_client):
    assert "default" in [each.name for each in await k8s_client.api(Namespace).list()]
"""


def check_installed() -> None:
    """Check that the installed package is complete, and is the one that is imported."""
    folder = Path(trioformer.__file__).parent
    assert folder.is_relative_to(sys.prefix), f"{folder} is not in {sys.prefix}"
    assert metadata.version("trioformer") == trioformer.__version__
    assert resources.files(trioformer).joinpath("py.typed").is_file()
    assert resources.files(trioformer).joinpath("models/_protobuf/tables/core_v1.txt").is_file()
    assert resources.files(trioformer).joinpath("cli/project/.github/workflows/ci.yml.txt").is_file()
    for module in pkgutil.iter_modules(trioformer.__path__, "trioformer."):
        if module.name.rpartition(".")[2] not in NEEDS_EXTRA:
            importlib.import_module(module.name)


async def follow_pods() -> None:
    """Run an informer on an embedded server, which is also on a socket: both need no extra."""
    server = APIServer()
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        await nursery.start(serve_http, server)
        async with server.open_client() as client:
            factory = SharedInformerFactory(client)
            pods = factory.informer(Pod)
            await nursery.start(factory.run)
            await pods.wait_until_at_least(server.create(Pod(metadata=ObjectMeta(name="web-0"))))
            assert [pod.name for pod in pods.lister] == ["web-0"]
        nursery.cancel_scope.cancel()


def run_the_program_of_the_readme() -> None:
    """Run the README's program, which the package has as its description, until it reports a change."""
    readme = metadata.metadata("trioformer")["Description"]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "follow_pods.py")
        program.write_text(readme.split("```python\n")[1].split("```")[0])
        command = [sys.executable, "-I", "-u", "-W", "error", "-X", "dev", str(program), "--embedded"]
        # A shell lets background jobs ignore SIGINT, and the program would inherit that.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert next(process.stdout).endswith("pods of app=web\n")
            assert next(process.stdout).startswith(("new:", "changed:", "gone:"))
            process.send_signal(signal.SIGINT)
    assert process.returncode == 128 + signal.SIGINT


def check_hints() -> None:
    """Check that what needs an extra names it in one line."""
    uses = {
        "metrics": "import trioformer.metrics",
        "testing": "from trioformer.testing import ControlPlane",
        "manager": "import trio; from trioformer.manager import follow_file; trio.run(follow_file('x', str).run)",
    }
    for extra, use in uses.items():
        done = subprocess.run([sys.executable, "-I", "-c", use], check=False, capture_output=True, text=True)
        (*_, last) = done.stderr.splitlines() or [""]
        assert last.endswith(f"`pip install 'trioformer[{extra}]'`"), f"{use}: {done.stderr}"


def check_plugin() -> None:
    """Run a test that uses the fixtures."""
    with tempfile.TemporaryDirectory() as folder:
        test = Path(folder, "test_first.py")
        test.write_text(TEST)
        command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "trio_mode=true", "--rootdir", folder]
        subprocess.run([sys.executable, "-I", *command, str(test)], check=True)


def main(extra: str) -> None:
    """Run the checks for what is installed."""
    check_installed()
    trio.run(follow_pods)
    if not extra:
        run_the_program_of_the_readme()
        check_hints()
    else:
        check_plugin()
    if extra == "all":
        importlib.import_module("trioformer.metrics").Metrics()
    subprocess.run([sys.executable, "-m", "pip", "check"], check=True)


if __name__ == "__main__":
    main("".join(sys.argv[1:]))

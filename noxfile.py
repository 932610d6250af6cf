"""The checks of this repository: ``nox -l`` lists them, ``nox -s tests lint`` runs two of them.

What follows ``--`` is handed to pytest (sessions ``tests`` and ``e2e``)::

    nox -s tests-3.12 -- --long
    nox -s tests-3.13 -- tests/test_errors.py -k status
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path

import nox

SUPPORTED = ("3.11", "3.12", "3.13")
COVERAGE = 95

PROJECT = nox.project.load_toml("pyproject.toml")
EXTRAS = PROJECT["project"]["optional-dependencies"]

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "venv"
# An interpreter that is not here is not tested with: never fetched, never an error.
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False
nox.options.sessions = ["lint", "typing", "tests", "docs"]


def _runs(interpreter: Path, version: str) -> bool:
    """Whether this is a working CPython of that version; a version manager's shim may be there and not work."""
    ask = "import platform, sys; print(platform.python_implementation(), '%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([interpreter, "-c", ask], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.stdout.split() == ["CPython", version]


def _candidates(version: str) -> list[Path]:
    name = f"python{version}"
    on_path = [Path(directory) / name for directory in os.get_exec_path()]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    newest_first = sorted(
        (found for found in pyenv.glob(f"{version}.*") if found.name.removeprefix(f"{version}.").isdecimal()),
        key=lambda found: int(found.name.rpartition(".")[2]),
        reverse=True,
    )
    return [path for path in (*on_path, *(found / "bin" / name for found in newest_first)) if path.exists()]


def _find_interpreters() -> list[str]:
    """Find the supported CPythons, and make nox find them as well: it looks along PATH only.

    The interpreter that runs nox counts for its version.  On a machine that has none of the supported versions, the
    tests run on that interpreter, whatever it is.
    """
    running = ".".join(platform.python_version_tuple()[:2])
    found = []
    for version in SUPPORTED:
        if version == running:
            found.append(version)
        elif interpreter := next((path for path in _candidates(version) if _runs(path, version)), None):
            found.append(version)
            # In front, where no broken shim can hide it.  Sessions call their own environment's programs anyway.
            os.environ["PATH"] = os.pathsep.join([str(interpreter.parent), os.environ["PATH"]])
    return found or [running]


INTERPRETERS = _find_interpreters()


def _install(session: nox.Session, *groups: str, project: bool = True) -> None:
    """Install the project in place with its extras, and the named dependency groups."""
    own = ["-e", f".[{','.join(EXTRAS)}]"] if project else []
    session.install("--quiet", *own, *nox.project.dependency_groups(PROJECT, *groups))


@nox.session(python=INTERPRETERS)
def tests(session: nox.Session) -> None:
    """Run the tests under coverage; a whole run must reach the limit."""
    _install(session, "test")
    environment = {"COVERAGE_FILE": str(Path(session.create_tmp()).resolve() / "coverage")}
    session.run("coverage", "erase", env=environment)
    session.run("coverage", "run", "-m", "pytest", *session.posargs, env=environment)
    session.run("coverage", "combine", "--quiet", env=environment)
    limit = COVERAGE if set(session.posargs) <= {"--long"} else 0
    session.run("coverage", "report", f"--fail-under={limit}", env=environment)


@nox.session(python=INTERPRETERS[0])
def lowest(session: nox.Session) -> None:
    """Run the tests with the oldest dependencies that pyproject.toml allows."""
    _install(session, "test")
    named = {*PROJECT["project"]["dependencies"], *chain.from_iterable(EXTRAS.values())}
    oldest = [each.replace(">=", "==") for each in sorted(named)]
    session.install("--quiet", *oldest)
    session.run("pytest", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, spelling, layers, and that the generated models are those of the stored schema."""
    _install(session, "lint")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("codespell")
    session.run("lint-imports", "--no-cache", "--no-logo")
    session.run("python", "-m", "trioformer.models._generate", "check")


@nox.session
def typing(session: nox.Session) -> None:
    """Check the types with mypy and pyright, and that the public interface is typed completely."""
    _install(session, "typing")
    session.run("mypy")
    session.run("pyright", env={"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"})
    session.run(
        "pyright", "--verifytypes", "trioformer", "--ignoreexternal", env={"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    )


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation; every warning and every unresolved name is an error."""
    _install(session, "docs")
    session.run("towncrier", "build", "--draft", silent=True)
    session.run("sphinx-build", "-n", "-W", "--keep-going", "-q", "-b", "html", "docs", "docs/_build/html")
    session.log("built docs/_build/html/index.html")


def _control_plane(session: nox.Session, *programs: str) -> dict[str, str]:
    """Build the programs of a control plane with Go, all or those named, and return where the tests look for them."""
    if shutil.which("go") is None:
        session.error("the control plane is built with Go, and go is not on PATH")
    session.run("python", "tests/e2e/build.py", *programs)
    # Everything is built now; the second run only says where, in its last line.
    said = session.run("python", "tests/e2e/build.py", *programs, silent=True)
    return {"KUBEBUILDER_ASSETS": str(said).strip().splitlines()[-1]}


@nox.session
def models(session: nox.Session) -> None:
    """Take the schema from a real API server and generate the models from it."""
    _install(session, "test")
    session.run("python", "tests/e2e/fetch_schema.py", env=_control_plane(session, "etcd", "kube-apiserver"))
    session.run("python", "-m", "trioformer.models._generate", "write")
    session.run("python", "-m", "trioformer.models._generate", "check")


@nox.session
def e2e(session: nox.Session) -> None:
    """Run the end-to-end tests against a real control plane."""
    _install(session, "test")
    session.run("pytest", "tests/e2e", *session.posargs, env=_control_plane(session))


@nox.session(venv_backend="none")
def bench(session: nox.Session) -> None:
    """Run the benchmarks beside other clients; they make environments of their own (what follows ``--``: names)."""
    session.run(sys.executable, "benchmarks/run.py", *session.posargs)


if __name__ == "__main__":
    sys.exit("run this with nox: nox -l")

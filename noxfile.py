"""The checks of this repository: ``nox -l`` lists them, ``nox -s tests lint`` runs two of them.

Arguments after ``--`` are passed to pytest (sessions ``tests…``, ``coverage``, ``lowest``,
``newest`` and ``e2e``)::

    nox -s tests -- --long
    nox -s tests-3.13 -- tests/test_errors.py -k status
    nox -s tests -- -n0 --pdb
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path

import nox

SUPPORTED = ("3.11", "3.12", "3.13", "3.14", "3.15")
IN_CHROOT = ("3.14", "3.15")
"""Interpreters of Debian's unstable distribution, for a system without them."""
COVERAGE = 98
CORE = ("tests/cache", "tests/kubeconfig", "tests/models", "tests/retry", "tests/workqueue")
"""Tests for interpreters between the oldest, with the oldest dependencies, and the newest."""

OTHER_ENCODING = tuple(
    f"tests/{name}" for name in ("cache", "client", "watchtools", "controller", "manager", "testing")
)
"""Tests for protobuf in place of the JSON that clients of the embedded server request."""

SIMULATIONS = ("tests/examples/test_simulations.py", "tests/testing/simulation")
"""Tests that tell many stories."""

KUBERNETES = ("v1.34.4", "v1.35.4", "v1.37.2")
"""The supported versions beside the one that ``tests/e2e/control_plane/go.mod`` pins, for which all tests are."""
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "kwok")
E2E_CORE = (
    "tests/e2e/test_cache.py",
    "tests/e2e/test_cluster.py",
    "tests/e2e/test_pod_logger.py",
    "tests/e2e/test_releases.py",
    "tests/e2e/test_website_operator.py",
    "tests/e2e/contract",
)
"""The tests that run on them."""

PROJECT = nox.project.load_toml("pyproject.toml")
EXTRAS = PROJECT["project"]["optional-dependencies"]

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "venv"
# A missing interpreter is skipped: it is never fetched and never an error.
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

    The interpreter that runs nox counts for its version.
    """
    found = []
    for version in SUPPORTED:
        if version == RUNNING:
            found.append(version)
        elif interpreter := next((path for path in _candidates(version) if _runs(path, version)), None):
            found.append(version)
            # First, so that no broken shim can hide it.  Sessions call their own environment's programs anyway.
            os.environ["PATH"] = os.pathsep.join([str(interpreter.parent), os.environ["PATH"]])
    return found


RUNNING = ".".join(platform.python_version_tuple()[:2])
INTERPRETERS = _find_interpreters()
# None is the interpreter that runs nox.  A machine that has none of the supported versions tests on that one.
OLDEST, NEWEST = next(iter(INTERPRETERS), None), next(reversed(INTERPRETERS), None)

# As many processes as there are logical processors: tests wait as often as they compute, and `auto` would count a
# processor with two threads once.  More than eight processes spend more time on collection than they save.
# `worksteal`, because a few tests take seconds and thousands take milliseconds: a process that is done takes half of
# what another one has left.
PARALLEL = ("-n", "logical", "--maxprocesses=8", "--dist=worksteal")


def _install(session: nox.Session, *groups: str, project: bool = True) -> None:
    """Install the project in place with its extras, and the named dependency groups."""
    own = ["-e", f".[{','.join(EXTRAS)}]"] if project else []
    session.install("--quiet", *own, *nox.project.dependency_groups(PROJECT, *groups))


def _tests(session: nox.Session) -> None:
    """Run the tests once, in parallel, on this interpreter."""
    _install(session, "test")
    session.run("pytest", *PARALLEL, *session.posargs)


@nox.session(python=NEWEST)
def tests(session: nox.Session) -> None:
    """Run the tests once, in parallel, on the newest interpreter found."""
    _tests(session)


@nox.session(default=False)
def protobuf(session: nox.Session) -> None:
    """Run the tests of lists and watches again with protobuf for all clients of the embedded server."""
    _install(session, "test")
    session.run("pytest", *PARALLEL, "--encoding=protobuf", *OTHER_ENCODING, *session.posargs)


def _core(session: nox.Session) -> None:
    """Run the tests of the core, in parallel, on this interpreter."""
    _install(session, "test")
    session.run("pytest", *PARALLEL, *CORE, *session.posargs)


# Sessions of their own, and not one with several interpreters, so that `nox -s tests` is one run.
for _version in INTERPRETERS:
    if _version != NEWEST:  # nox takes the name for the session above
        nox.session(_tests, python=_version, name=f"tests-{_version}", default=False)
    _tags = [] if _version in (OLDEST, NEWEST) else ["between"]
    nox.session(_core, python=_version, name=f"core-{_version}", default=False, tags=_tags)


def _measured_tests(session: nox.Session) -> None:
    """Run the tests once, in parallel, under branch coverage; a whole run must reach the limit."""
    major, minor = (OLDEST or RUNNING).split(".")
    environment = {
        "COVERAGE_FILE": str(Path(session.create_tmp()).resolve() / "coverage"),
        # The fastest tracer that measures branches: sys.monitoring, which reports branches from 3.14 on, else the one
        # in C.  It is named, because coverage stops when a named ctrace is missing; by default it would fall back to
        # the one in Python, which takes many times as long.
        "COVERAGE_CORE": "sysmon" if (int(major), int(minor)) >= (3, 14) else "ctrace",
    }
    session.run("coverage", "erase", env=environment)
    session.run("coverage", "run", "-m", "pytest", *PARALLEL, *session.posargs, env=environment)
    session.run("coverage", "combine", "--quiet", env=environment)
    limit = COVERAGE if set(session.posargs) <= {"--long"} else 0
    session.run("coverage", "report", f"--fail-under={limit}", env=environment)


@nox.session(python=OLDEST)
def coverage(session: nox.Session) -> None:
    """Run the tests once, in parallel, under branch coverage; a whole run must reach the limit."""
    _install(session, "test")
    _measured_tests(session)


def _requirements() -> list[str]:
    """Return what the project needs at run time, with its extras, but not itself, which is in the extra ``all``."""
    every = {*PROJECT["project"]["dependencies"], *chain.from_iterable(EXTRAS.values())}
    return sorted(each for each in every if not each.startswith(f"{PROJECT['project']['name']}["))


@nox.session(python=OLDEST)
def lowest(session: nox.Session) -> None:
    """Run the tests under coverage on the oldest interpreter found, with the oldest dependencies that are allowed."""
    _install(session, "test")
    session.install("--quiet", *(re.sub(r">=([^,]+).*", r"==\1", each) for each in _requirements()))
    _measured_tests(session)


@nox.session(python=NEWEST)
def newest(session: nox.Session) -> None:
    """Run the tests on the newest interpreter found, with the newest dependencies allowed, pre-releases included."""
    _install(session, "test")
    session.install("--quiet", "--upgrade", "--pre", *_requirements())
    session.run("python", "-m", "pip", "list")
    session.run("pytest", *PARALLEL, *session.posargs)


# The mounts are in a namespace of this process, so that they end with it.
ENTER_CHROOT = """
root=$1
shift
mkdir -p "$root/project"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind . "$root/project"
exec chroot "$root" sh -ec '
    cd /project
    "$1" -m venv "/nox-$1"
    PATH="/nox-$1/bin:$PATH"
    shift
    pip install -q nox
    exec nox --envdir=/sessions "$@"
' sh "$@"
"""


def _chroot(session: nox.Session) -> None:
    """Run the tests and use the wheel with a Python from Debian's unstable distribution, in a folder of its own."""
    if os.geteuid() != 0:
        session.error("debootstrap, mount and chroot need root")
    if missing := [program for program in ("debootstrap", "unshare") if shutil.which(program) is None]:
        session.error(f"{', '.join(missing)} not on PATH (Debian's packages are debootstrap and util-linux)")
    root = Path(".cache/chroot/sid").resolve()
    if not (root / "usr/bin").exists() or (root / "debootstrap").exists():  # an unfinished one leaves the latter
        shutil.rmtree(root, ignore_errors=True)
        root.parent.mkdir(parents=True, exist_ok=True)
        packages = ["ca-certificates", "procps"]
        packages += [f"python{each}{part}" for each in IN_CHROOT for part in ("", "-venv")]
        session.run("debootstrap", "--variant=minbase", f"--include={','.join(packages)}", "sid", str(root))
    # pip needs the same variables, and the certificates that they name, to reach its index there.
    for name in ("PIP_CERT", "SSL_CERT_FILE"):
        if certificates := os.environ.get(name):
            (root / Path(certificates).relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(certificates, root / Path(certificates).relative_to("/"))
    version = session.name.removeprefix("chroot-")
    session.run(
        *("unshare", "--mount", "sh", "-ec", ENTER_CHROOT, "sh", str(root), f"python{version}"),
        *("-s", f"tests-{version}", "package", "--", *session.posargs),
        env={"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"},
    )


for _version in IN_CHROOT:
    nox.session(_chroot, venv_backend="none", name=f"chroot-{_version}", default=False)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, spelling, layers, and that the generated models are those of the stored schema."""
    _install(session, "lint")
    session.run("ruff", "check")
    session.run("ruff", "check", "--config=pyproject.toml", "examples/website_operator.py")
    session.run("ruff", "format", "--check")
    session.run("ruff", "format", "--check", "--config=pyproject.toml", "examples/website_operator.py")
    session.run("codespell")
    session.run("lint-imports", "--no-cache", "--no-logo")
    session.run("python", "-m", "trioformer.models._generate", "check")


@nox.session
def typing(session: nox.Session) -> None:
    """Check the types with mypy and pyright, in the documentation as well, and that every public name is typed."""
    _install(session, "typing")
    session.run("python", "-m", "tests.typing.door_stubs", "--check")
    session.run("mypy")
    session.run("python", "-m", "tests.docs.typed_pages")
    session.run("pyright", env={"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"})
    session.run("pyright", "--project", "examples", env={"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"})
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


@nox.session
def package(session: nox.Session) -> None:
    """Build the sdist and the wheel into ``dist``, twice, and use the wheel on each interpreter, as a user would."""
    _install(session, "package", project=False)
    last_commit = ["git", "log", "-1", "--format=%ct"]
    done = subprocess.run(last_commit, capture_output=True, text=True, check=False) if shutil.which("git") else None
    # An unpacked sdist has no commit; any constant is reproducible.
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or (done.stdout.strip() if done else "") or "1700000000"
    temporary = Path(session.create_tmp()).resolve()
    again = temporary / "built-again"
    for built in (Path("dist").resolve(), again):
        shutil.rmtree(built, ignore_errors=True)
        # The wheel is built from the sdist, so the sdist is complete.
        session.run("python", "-m", "build", "--outdir", str(built), env={"SOURCE_DATE_EPOCH": epoch}, silent=True)
    built = Path("dist").resolve()
    for file in sorted(built.iterdir()):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        if hashlib.sha256((again / file.name).read_bytes()).hexdigest() != digest:
            session.error(f"{file.name} is not reproducible: a second build has other bytes")
        session.log(f"{digest}  {file.name}")
    (sdist,), (wheel,) = built.glob("*.tar.gz"), built.glob("*.whl")
    session.run("twine", "check", "--strict", str(sdist), str(wheel))
    _build_changelog(session, sdist, temporary)
    smoke_test = str(Path("tests/project/smoke.py").resolve())
    for version in INTERPRETERS or [RUNNING]:
        environment = temporary / f"environment-{version}"
        interpreter = sys.executable if version == RUNNING else f"python{version}"
        session.run(interpreter, "-m", "venv", "--clear", str(environment), external=True)
        python = str(environment / "bin" / "python")
        with session.chdir(temporary):  # where no folder has the name of the package
            for extra in ("", "[testing]", "[all]"):  # each adds to what is there
                session.run(python, "-m", "pip", "install", "--quiet", f"{wheel}{extra}", external=True)
                session.run(python, "-I", smoke_test, extra.strip("[]"), external=True)


def _build_changelog(session: nox.Session, sdist: Path, directory: Path) -> None:
    """Build the release notes and the pages with them in the unpacked sdist, as a release does in the repository."""
    shutil.unpack_archive(sdist, directory, filter="data")
    with session.chdir(directory / sdist.name.removesuffix(".tar.gz")):
        Path("docs/newsfragments/example.feature.rst").write_text("Added an example.\n")  # there may be no other one
        session.run("towncrier", "build", "--yes", "--version", "9.9.9", "--date", "2026-01-01", silent=True)
        _install(session, "docs")
        session.run("sphinx-build", "-n", "-W", "--keep-going", "-q", "-b", "html", "docs", "docs/_build/html")


def _control_plane(session: nox.Session, *programs: str, env: dict[str, str] | None = None) -> dict[str, str]:
    """Build the programs of a control plane with Go, all or those named, and return where the tests look for them."""
    if shutil.which("go") is None:
        session.error("the control plane is built with Go, and go is not on PATH")
    session.run("python", "tests/e2e/build.py", *programs, env=env)
    # Everything is built now; the last line of the second run names the directory.
    said = session.run("python", "tests/e2e/build.py", *programs, env=env, silent=True)
    return {"KUBEBUILDER_ASSETS": str(said).strip().splitlines()[-1]}


TABLES = Path("trioformer/testing/tables")
WIRE_TYPES = Path("trioformer/models/_protobuf/tables")


def _write_tables(session: nox.Session, directory: Path, programs: dict[str, str]) -> None:
    """Write the tables of a release, and for the installed release those of protobuf types, from its programs."""
    for name in ("field_types", "bootstrap", "openapi", "columns", "kinds", "discovery"):
        session.run("python", "-m", f"tests.e2e.fetch_{name}", str(directory), env=programs)
    modules = sorted(path.stem for path in WIRE_TYPES.glob("*.txt"))
    go_mod = Path(programs["KUBEBUILDER_ASSETS"], "module", "go.mod")  # of a release that is not pinned
    go_run = ("go", "run", "-trimpath", *(["-mod=mod", f"-modfile={go_mod}"] if go_mod.exists() else []), ".")
    written = {"defaults": [directory / "defaults.txt"]}
    if directory == TABLES:  # other releases have the types of the models
        written["protobuf"] = [WIRE_TYPES, directory / "go_types.txt"]
    for program, paths in written.items():
        arguments = [*(str(path.resolve()) for path in paths), *modules]
        with session.chdir(f"trioformer/models/_generate/{program}"):
            session.run(*go_run, *arguments, external=True)


@nox.session(default=False)
def tables(session: nox.Session) -> None:
    """Make the tables of a Kubernetes release for the embedded server: ``nox -s tables -- VERSION DIRECTORY``."""
    if len(session.posargs) != 2:
        session.error(f"name a version, such as {KUBERNETES[0]}, and a directory: nox -s tables -- VERSION DIRECTORY")
    version, directory = session.posargs
    _install(session, "test")
    env = {"TRIOFORMER_E2E_KUBERNETES": version}
    programs = _control_plane(session, "etcd", "kube-apiserver", "kube-controller-manager", "kwok", env=env)
    # The rules of several fields, the cells of columns and the names of Go types are not made for other releases.
    shutil.copytree(TABLES, directory, dirs_exist_ok=True)
    _write_tables(session, Path(directory), programs | env)
    session.log(f"made {directory}: APIServer(tables={directory!r}) follows Kubernetes {version}")


@nox.session
def models(session: nox.Session) -> None:
    """Take the schema from a real API server and generate the models from it, and what the embedded server needs."""
    _install(session, "test")
    programs = _control_plane(session, "etcd", "kube-apiserver", "kube-controller-manager", "kwok")
    session.run("python", "tests/e2e/fetch_schema.py", env=programs)
    _write_tables(session, TABLES, programs)
    session.run("python", "-m", "tests.e2e.record_apply", env=programs)
    session.run("python", "-m", "tests.e2e.record_controllers", env=programs)
    session.run("python", "-m", "trioformer.models._generate", "write")
    session.run("python", "-m", "trioformer.models._generate", "check")


@nox.session
def e2e(session: nox.Session) -> None:
    """Run the end-to-end tests against real control planes, in parallel where no test has a bound in seconds."""
    _install(session, "test")
    env = _control_plane(session)
    # By file, because what a file's tests share costs seconds to start; each process has up to four control planes.
    parallel = ("-n", "logical", "--maxprocesses=4", "--dist=loadfile")
    no_test_selected = 5  # by arguments such as -k
    for how in (("-m", "not alone", *parallel), ("-m", "alone")):
        session.run("pytest", "tests/e2e", *how, *session.posargs, env=env, success_codes=[0, no_test_selected])


@nox.session(name="e2e-versions", default=False)
def e2e_versions(session: nox.Session) -> None:
    """Run the core of the end-to-end tests on each supported version of Kubernetes that ``e2e`` does not run on."""
    _install(session, "test")
    parallel = ("-n", "logical", "--maxprocesses=4", "--dist=loadfile")
    for version in KUBERNETES:
        env = {"TRIOFORMER_E2E_KUBERNETES": version}
        env |= _control_plane(session, *CONTROL_PLANE, env=env)
        session.log(f"Kubernetes {version}")
        session.run("pytest", *E2E_CORE, *parallel, *session.posargs, env=env)


@nox.session(default=False)
def simulations(session: nox.Session) -> None:
    """Simulate the operators of the examples, and those with planted mistakes and published bugs (10 minutes)."""
    _install(session, "test")
    session.run("pytest", *PARALLEL, "--long", *(session.posargs or SIMULATIONS))


@nox.session(default=False)
def foreign(session: nox.Session) -> None:
    """Run clients and controllers of other projects against the embedded server (what follows ``--``: their names)."""
    _install(session, "test")
    env = _control_plane(session, "kube-controller-manager", "kube-scheduler", "kwok")
    session.run("python", "-m", "tests.e2e.foreign.run", *session.posargs, env=env)


@nox.session(default=False)
def schemathesis(session: nox.Session) -> None:
    """Send requests that schemathesis derives from the OpenAPI documents to the embedded server (15 minutes)."""
    _install(session, "test")
    session.install("--quiet", "schemathesis>=4.32,<5")
    session.run("python", "-m", "tests.fuzz.openapi", *session.posargs)


@nox.session(venv_backend="none")
def bench(session: nox.Session) -> None:
    """Run the benchmarks beside other clients; they make environments of their own (what follows ``--``: names)."""
    session.run(sys.executable, "benchmarks/run.py", *session.posargs)


if __name__ == "__main__":
    sys.exit("run this with nox: nox -l")

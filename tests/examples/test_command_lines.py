"""What holds for the command line of every example."""

from __future__ import annotations

import io
import itertools
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import trio

from examples import command_line
from tests.examples.programs import (
    ENDS_BY_ITSELF,
    FIRST_LINES,
    FOLDER,
    LOGS_WARNINGS,
    ONLY_LOGS,
    SHARED,
    Example,
    examples,
)
from tests.support.processes import KUBECONFIG, logging_as_in_a_new_process, result_here

EXAMPLES = examples()
WITH_FLAGS = [each for each in EXAMPLES if not each.is_self_contained]
FLAGS = ["--embedded", "--kubeconfig PATH", "--context NAME", "--namespace NAME"]
SECONDS = 20.0
"""How long each runs, by its clock."""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    """A kubeconfig of a server that nothing connects to."""
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG.format(url="http://127.0.0.1:1"))
    return file


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_every_example_says_what_it_does_and_which_flags_it_has(example: Example) -> None:
    code, lines, errors = result_here(example.path, "--help")
    assert (code, errors) == (0, [])
    missing = [flag for flag in (FLAGS[:1] if example.is_self_contained else FLAGS) if flag not in "\n".join(lines)]
    assert missing == []
    assert lines[0].startswith("usage:")


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_a_missing_kubeconfig_is_reported_in_one_line(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = str(tmp_path / "missing")
    if example.is_self_contained:
        monkeypatch.setenv("KUBECONFIG", missing)
        code, lines, (*logged, error) = result_here(example.path)
        assert len(logged) <= 1  # that of $KUBECONFIG, which may name several files
    else:
        code, lines, (error,) = result_here(example.path, *example.needed, "--kubeconfig", missing)
    assert (code, lines) == (1, FIRST_LINES.get(example.name, []))
    assert missing in error


@pytest.mark.parametrize("example", WITH_FLAGS, ids=str)
def test_without_any_kubeconfig_the_error_names_embedded(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    code, lines, (*_, error) = result_here(example.path, *example.needed)
    assert (code, lines) == (1, FIRST_LINES.get(example.name, []))
    assert "no cluster configuration found" in error
    assert error.count("; try --embedded for a cluster inside this process") == 1


@pytest.mark.parametrize("example", WITH_FLAGS, ids=str)
def test_an_unknown_context_is_reported_in_one_line(example: Example, kubeconfig: Path) -> None:
    command = [*example.needed, "--kubeconfig", str(kubeconfig), "--context", "nowhere"]
    code, lines, errors = result_here(example.path, *command)
    assert (code, lines, len(errors)) == (1, FIRST_LINES.get(example.name, []), 1)
    assert "there is no context 'nowhere'" in errors[0]


@pytest.mark.parametrize("example", WITH_FLAGS, ids=str)
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--namespace", "No Name"], "'No Name' is not a name"),
        (["--kubeconfig", "file"], "--embedded cannot be combined with --kubeconfig or --context"),
    ],
)
def test_common_flags_that_make_no_sense_are_wrong_usage(example: Example, arguments: list[str], problem: str) -> None:
    code, lines, errors = result_here(example.path, "--embedded", *arguments)
    assert (code, lines, len(errors)) == (2, [], 1)
    assert problem in errors[0]


def unexpected(example: Example, errors: Sequence[str]) -> list[str]:
    """Return the lines of standard error that should not be there."""
    logged = ("WARNING: ", "INFO: ") if example.name in LOGS_WARNINGS else ()
    return [line for line in errors if not line.startswith(logged)]


class TimedOutput(io.StringIO):
    """Records when something was written to it, by trio's clock."""

    def __init__(self, times: list[float]) -> None:
        super().__init__()
        self.times = times

    def write(self, text: str) -> int:
        if text.strip():
            self.times.append(trio.current_time())
        return super().write(text)


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_embedded_it_shows_something_as_long_as_it_runs_and_ends_cleanly(example: Example) -> None:
    times: list[float] = []
    output, log = TimedOutput(times), TimedOutput(times)
    # Two tests at the same time cannot listen on the same port.
    any_port = ["--http", "127.0.0.1:0"] if '"--http"' in example.text else []
    code, _, _ = result_here(
        *(example.path, "--embedded", *any_port),
        is_virtual=example.is_virtual,
        interrupt_after=SECONDS,
        output=output,
        errors=log,
    )
    assert unexpected(example, log.getvalue().splitlines()) == []
    if example.name in ENDS_BY_ITSELF:
        assert code == 0
        assert times[-1] - times[0] < SECONDS
    else:
        assert code in {0, 130}
        waits = [after - before for before, after in itertools.pairwise(times)]
        assert max(waits) <= 5
        assert times[-1] - times[0] > SECONDS - 10


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
@pytest.mark.parametrize("seconds", [0.0, 1.1])
def test_ctrl_c_soon_after_the_start_is_clean_too(example: Example, seconds: float) -> None:
    code, _, errors = result_here(example.path, "--embedded", is_virtual=example.is_virtual, interrupt_after=seconds)
    assert code in {0, 130}
    assert unexpected(example, errors) == []


@pytest.fixture
def unread() -> Iterator[io.TextIOWrapper]:
    """A pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(os.devnull, "w") as nowhere, open(writer, "w") as stream:
        yield stream
        os.dup2(nowhere.fileno(), writer)  # or close() would fail


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_it_ends_when_nobody_reads_its_output(example: Example, unread: io.TextIOWrapper) -> None:
    code, _, errors = result_here(
        example.path, "--embedded", is_virtual=example.is_virtual, interrupt_after=SECONDS, output=unread
    )
    assert code == 141 or example.name in ONLY_LOGS
    assert unexpected(example, errors) == []


@pytest.fixture
def full() -> Iterator[io.TextIOWrapper]:
    """A file on a full disk."""
    with open(os.devnull, "w") as nowhere, open("/dev/full", "w") as stream:
        yield stream
        os.dup2(nowhere.fileno(), stream.fileno())  # or close() would fail


@pytest.mark.parametrize("name", ["list_and_watch", "pod_logger", "custom_controller", "restart_dependents"])
def test_a_full_disk_is_reported_in_one_line(name: str, full: io.TextIOWrapper) -> None:
    code, _, errors = result_here(
        f"examples/{name}.py", "--embedded", is_virtual=True, interrupt_after=SECONDS, output=full
    )
    assert code == 1
    # Named after the program, or after pytest here.
    lines = [line.partition(": ")[2] for line in errors if not line.startswith(("WARNING: ", "INFO: "))]
    assert lines == ["cannot write to standard output: No space left on device"]


def test_a_closed_output_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(arguments: command_line.Arguments) -> None:
        print("lost", file=sys.stdout, flush=True)

    monkeypatch.setattr(sys, "argv", ["program"])
    monkeypatch.setattr(sys, "stdout", None)  # as Python has it with ``>&-``
    with logging_as_in_a_new_process(), pytest.raises(SystemExit) as ended:
        command_line.start(main, command_line.parser_of("A program."))
    assert ended.value.code == 0


def rows_of_the_index() -> list[tuple[str, str]]:
    """Return the number and the link of each row of the index."""
    index = (FOLDER / "README.md").read_text()
    return re.findall(r"^\| ([\d.]+) \| \[`[\w/.]+`\]\(([\w/.]+)\) \| .+ \|$", index, re.MULTILINE)


def test_every_example_is_in_the_index_once() -> None:
    linked = sorted(link for _, link in rows_of_the_index())
    programs = {path.name for path in FOLDER.glob("*.py")} - SHARED
    assert linked == sorted([*programs, "first_controller/"])


def test_the_index_numbers_the_examples() -> None:
    numbers = [tuple(map(int, number.split("."))) for number, _ in rows_of_the_index()]
    groups = [[position for group, position in numbers if group == each] for each in range(1, numbers[-1][0] + 1)]
    assert numbers == sorted(numbers)
    assert groups == [list(range(1, len(group) + 1)) for group in groups]


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (command_line.positive, "0"),
        (command_line.positive, "-1"),
        (command_line.seconds, "-1"),
        (command_line.seconds, "nan"),
        (command_line.seconds, "inf"),
        (command_line.address, "8080"),
        (command_line.address, "localhost:http"),
        (command_line.address, ":65536"),
        (command_line.api_version, "apps"),
        (command_line.namespace_name, ""),
        (command_line.namespace_name, "a" * 64),
        (command_line.file, "examples"),
        (command_line.file, "no-such-file"),
        (command_line.path, "x" * 5_000),
    ],
)
def test_values_that_are_not_valid_are_refused(parse: object, text: str) -> None:
    assert callable(parse)
    with pytest.raises(command_line.argparse.ArgumentTypeError):
        parse(text)


@pytest.mark.parametrize("example", [each for each in EXAMPLES if '"--workers"' in each.text], ids=str)
def test_no_workers_are_wrong_usage(example: Example) -> None:
    code, lines, errors = result_here(example.path, "--embedded", "--workers", "0")
    assert (code, lines) == (2, [])
    assert errors == [f"{example}: error: argument --workers: 0 is not at least 1 (see --help)"]

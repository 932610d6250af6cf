"""Flags and arguments of the commands that change objects which do not fit together: kubectl's words."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.support.cli import run
from trioformer.testing import APIServer

UNEXPECTED = "error: Unexpected args: [x]\n"
NO_FILE = "error: must specify one of -f and -k\n"
BOTH = "error: cannot set --all and --selector at the same time\n"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("label cm --all -l a=b x=y", BOTH),
        ("label cm --all --field-selector a=b x=y", "error: cannot set --all and --field-selector at the same time\n"),
        ("label cm a --all x=y", "error: name cannot be provided when a selector is specified\n"),
        ("label cm x=y", "error: resource(s) were provided, but no name was specified\n"),
        ("apply x", UNEXPECTED),
        ("apply", NO_FILE),
        ("apply -f FILE --all -l a=b", BOTH),
        ("apply -f FILE --force-conflicts", "error: --force-conflicts only works with --server-side\n"),
        ("apply -f FILE --server-side --dry-run=client", "error: --dry-run=client doesn't work with --server-side"),
        ("apply -f FILE --prune", "error: all resources selected for prune without explicitly passing --all."),
        ("apply -f FILE --prune --server-side --all", "error: --prune with --server-side needs a label selector, -l"),
        ("apply -f FILE --validate=x", 'error: invalid - validate option "x"; must be one of: strict (or true)'),
        ("apply -f FILE --prune --all --prune-allowlist=x", "error: invalid GroupVersionKind format: x, please follow"),
        (
            "apply -f FILE --prune --all --prune-allowlist=a/v1/Foo",
            'error: no matches for kind "Foo" in version "a/v1"',
        ),
        ("diff x", UNEXPECTED),
        ("diff", NO_FILE),
        ("diff -f FILE --force-conflicts", "error: --force-conflicts only works with --server-side\n"),
    ],
)
async def test_what_does_not_fit_together_is_said_in_kubectls_words(
    api_server: APIServer, tmp_path: Path, command: str, message: str
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
    result = await run(api_server, *shlex.split(command.replace("FILE", str(file))))
    assert result.code in (1, 2)
    assert result.err.startswith(message)

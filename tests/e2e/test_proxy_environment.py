"""HTTPS_PROXY, HTTP_PROXY and NO_PROXY beside Go's httpproxy and net/http, which kubectl uses."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.proxy_environments import DIRECT, ERROR, ROWS, Row, random_row
from trioformer.errors import ConfigError
from trioformer.transport._proxy._environment import find_in_environment

PROGRAM = "proxy-environment-go"


def ask_go(program: Path, rows: Sequence[Row], *, both: bool) -> list[dict[str, str]]:
    lines = [json.dumps({"environment": dict(row.environment), "url": row.server, "both": both}) for row in rows]
    done = subprocess.run([program], input="\n".join(lines), capture_output=True, text=True, check=True, timeout=120)
    return [json.loads(line) for line in done.stdout.splitlines()]


def ask_ours(row: Row) -> str:
    try:
        found = find_in_environment(row.server, row.environment.get)
    except ConfigError:
        return ERROR
    return DIRECT if found is None else found[1].reveal()


def test_the_table_has_the_answers_of_go(assets: Path) -> None:
    for row, answer in zip(ROWS, ask_go(assets / PROGRAM, ROWS, both=True), strict=True):
        assert answer == {"httpproxy": row.expected, "nethttp": row.expected}, row


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_random_lists_of_exceptions_have_the_effect_that_they_have_in_go(assets: Path, seed: int) -> None:
    rng = random.Random(seed)
    rows = [random_row(rng) for _ in range(200_000 if seed == 2 else 5_000)]
    answers = [answer["httpproxy"] for answer in ask_go(assets / PROGRAM, rows, both=False)]
    assert len(set(answers)) > 1
    differences = [
        (row.environment["NO_PROXY"], row.server, answer)
        for row, answer in zip(rows, answers, strict=True)
        if ask_ours(row) != answer
    ]
    assert differences == []

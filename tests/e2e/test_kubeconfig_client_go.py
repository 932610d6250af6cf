"""Our loader and client-go's lead to the same configuration, also when values of the kubeconfigs are replaced."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from tests.e2e.kubeconfig_cases import Case, certificates, document, encoded, generated, hand_made, write
from trioformer import ClusterConfig, load_config
from trioformer.errors import ConfigError
from trioformer.kubeconfig import ConfigOverrides, Impersonation

GENERATED = 400
DATA = ("ca_data", "client_certificate_data", "client_key_data")
ALTERNATIVES = (
    {"insecure_skip_tls_verify", "ca_file", "ca_data"},
    {"client_certificate_file", "client_certificate_data"},
)
"""Overrides that contradict each other."""
STRICTER = (
    "which does not exist; known",  # client-go: anonymous without the user
    "has both a bearer token and a user name",  # client-go notices it when it opens a client
)
"""Errors of ours about what client-go accepts."""


@attrs.frozen
class Replaced:
    """A case, and what replaces its values."""

    case: Case
    overrides: ConfigOverrides


def replaced(number: int, directory: Path, files: Mapping[str, bytes], pems: Mapping[str, str]) -> Replaced:
    """A generated case with one to three replacements."""
    dice = random.Random(f"overrides {number}")
    groups: list[dict[str, Any]] = [
        {"server": "https://other:1"},
        {"server": "https://other:1", "tls_server_name": "other"},
        {"tls_server_name": "other"},
        {"insecure_skip_tls_verify": True},
        {"ca_file": directory / "tls/ca.crt"},
        {"ca_data": files["tls/ca.crt"]},
        {"proxy_url": "socks5://other:2"},
        {"disable_compression": True},
        {"namespace": "other"},
        {"cluster": dice.choice(["a", "b", "gone"])},
        {"user": dice.choice(["a", "b", "gone"])},
        {"token": "other"},
        {"token_file": directory / "tokens/token"},
        {"token": "other", "token_file": directory / "tokens/token"},
        {"username": "other", "password": "other"},
        {"client_certificate_file": directory / "tls/client.crt", "client_key_file": directory / "tls/client.key"},
        {"client_certificate_data": files["tls/client.crt"], "client_key_file": directory / "tls/client.key"},
        {"client_certificate_data": files["tls/client.crt"], "client_key_data": files["tls/client.key"]},
        {"impersonate": Impersonation(user="other")},
        {"impersonate": Impersonation(user="other", uid="7", groups=("x",), extra={"y": ("z",)})},
    ]
    chosen: dict[str, Any] = {}
    for group in dice.sample(groups, dice.randint(1, 3)):
        if not any(chosen.keys() & names and group.keys() & names for names in ALTERNATIVES):
            chosen |= group
    return Replaced(generated(number, pems), ConfigOverrides(**chosen))


def question(directory: Path, given: Replaced) -> dict[str, object]:
    """A case as the program in Go reads it."""
    case, overrides = given.case, attrs.asdict(given.overrides, recurse=False)
    user = given.overrides.impersonate
    return {
        "directory": str(directory),
        "explicit": case.listed[0] if case.explicit else "",
        "listed": [] if case.explicit else case.listed,
        "context": case.context or "",
        "overrides": {
            **{name: value for name, value in overrides.items() if isinstance(value, (str, bool))},
            **({"as": user.user, "as_uid": user.uid} if user else {}),
        },
        "data": {name: base64.b64encode(overrides[name]).decode() for name in DATA if overrides[name]},
        "groups": user.groups if user else (),
        "extra": user.extra if user else {},
    }


def expected_of(theirs: Mapping[str, Any], given: Replaced) -> dict[str, object]:
    """What client-go says, with our rules about what is replaced as a whole."""
    wanted = {name: base64.b64decode(value or "") if name in DATA else value for name, value in theirs.items()}
    wanted["token"] = wanted["token"].strip()
    wanted["as_groups"], wanted["as_extra"] = tuple(wanted["as_groups"] or ()), wanted["as_extra"] or {}
    overrides = given.overrides
    if overrides.token or overrides.token_file:
        file = overrides.token_file
        wanted["token"] = overrides.token or Path(file or "").read_text().strip()
        wanted["token_file"] = file or ""
    if overrides.impersonate:
        user = overrides.impersonate
        wanted |= {"as": user.user, "as_uid": user.uid or "", "as_groups": user.groups}
        wanted["as_extra"] = {key: list(values) for key, values in user.extra.items()}
    return wanted


def seen_by_us(config: ClusterConfig) -> dict[str, object]:
    """Our configuration with the names and the empty values of the program in Go."""
    user = config.impersonate
    seen = {name: getattr(config, name) for name in attrs.fields_dict(ClusterConfig)}
    for name in ("impersonate", "exec", "context", "source", "in_cluster"):
        del seen[name]
    seen = {name: value or (b"" if name in DATA else value or "") for name, value in seen.items()}
    for name in ("insecure_skip_tls_verify", "disable_compression"):
        seen[name] = bool(seen[name])
    return seen | {
        "command": config.exec.command if config.exec else "",
        "as": user.user if user else "",
        "as_uid": (user and user.uid) or "",
        "as_groups": user.groups if user else (),
        "as_extra": {key: list(values) for key, values in user.extra.items()} if user else {},
        "error": "",
        "errors": 0,
    }


def load(given: Replaced) -> ClusterConfig:
    case = given.case
    listed = {} if case.explicit else {"KUBECONFIG": ":".join(case.listed)}
    explicit = case.listed[0] if case.explicit else None
    return load_config(kubeconfig=explicit, context=case.context, overrides=given.overrides, environ=listed)


async def ask(assets: Path, questions: list[dict[str, object]]) -> list[dict[str, Any]]:
    done = await trio.run_process(
        [str(assets / "clientcmd-client-go")], stdin=json.dumps(questions).encode(), capture_stdout=True
    )
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


async def test_our_loader_leads_to_what_client_go_leads_to(
    assets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = certificates()
    pems = encoded(files)
    cases: dict[str, tuple[Path, Replaced]] = {}
    for number, (name, case) in enumerate(hand_made(pems).items()):
        cases[name] = tmp_path / f"hand-made-{number}", Replaced(case, ConfigOverrides())
    for number in range(GENERATED):
        directory = tmp_path / f"generated-{number}"
        cases[f"generated {number}"] = directory, replaced(number, directory, files, pems)
    for directory, given in cases.values():
        write(given.case, directory, files)
    answers = await ask(assets, [question(directory, given) for directory, given in cases.values()])

    different: dict[str, object] = {}
    stricter = refused = 0
    for (name, (directory, given)), theirs in zip(cases.items(), answers, strict=True):
        monkeypatch.chdir(directory)
        try:
            ours: dict[str, object] | str = seen_by_us(load(given))
        except ConfigError as exc:
            ours = str(exc)
        if isinstance(ours, str):
            if theirs["errors"]:
                refused += 1
            elif any(part in ours for part in STRICTER):
                stricter += 1
            else:
                different[name] = (ours, theirs)
        elif theirs["errors"] or ours != (wanted := expected_of(theirs, given)):
            different[name] = theirs["error"] or {
                field: (ours[field], wanted[field]) for field in wanted if ours.get(field) != wanted[field]
            }
    print(f"{len(cases)} cases: both refuse {refused}, only ours refuses {stricter}, {len(different)} differ")
    assert different == {}
    assert len(cases) - refused - stricter >= 150


async def test_our_error_has_all_problems_that_client_go_s_has(
    assets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = certificates()
    pems = encoded(files)
    case = Case(
        {
            "config": document(
                cluster={
                    "server": "https://h",
                    "proxy-url": "ftp://proxy",
                    "certificate-authority": "gone",
                    "certificate-authority-data": pems["ca"],
                },
                user={
                    "token": "t",
                    "username": "u",
                    "client-certificate": "gone",
                    "client-certificate-data": pems["certificate"],
                    "client-key": "gone",
                    "client-key-data": pems["key"],
                    "as-groups": ["a"],
                    "exec": {"apiVersion": "", "env": [{"name": "", "value": "x"}], "interactiveMode": "Sometimes"},
                },
            )
        }
    )
    given = Replaced(case, ConfigOverrides())
    write(case, tmp_path / "case", files)
    monkeypatch.chdir(tmp_path / "case")
    (theirs,) = await ask(assets, [question(tmp_path / "case", given)])
    with pytest.raises(ConfigError) as caught:
        load(given)
    # Files that do not exist are three more problems of theirs, as they are not read if there are data.
    assert theirs["errors"] == 13, theirs["error"]
    assert len(caught.value.problems) == theirs["errors"] - 3, caught.value.problems

"""What a plugin writes to its standard error: bounded, in lines, and with secrets hidden."""

from __future__ import annotations

import pytest
import trustme

from tests.support.cpu_time import least_seconds
from trioformer._secret import Secret
from trioformer.transport._exec._stderr import (
    MAX_KEPT,
    MAX_LINES,
    MAX_SHOWN,
    ErrorOutput,
    hide_secrets,
    printed_words,
    secret_arguments,
)

CLIENT = trustme.CA().issue_cert("client@test")
KEY = CLIENT.private_key_pem.bytes().decode()
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJqbyJ9.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"got {JWT}, which is old", "got <hidden>, which is old"),
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer <hidden>"),
        ("sent bearer abcdefgh to x", "sent bearer <hidden> to x"),
        ("token=abc, region=eu", "token=<hidden>, region=eu"),
        ('{"access_token": "a b c", "expires": 3}', '{"access_token": <hidden>, "expires": 3}'),
        ("AWS_SESSION_TOKEN=abc", "AWS_SESSION_TOKEN=<hidden>"),
        ("client_secret='x y' is wrong", "client_secret=<hidden> is wrong"),
        ("login --password hunter2 --region eu", "login --password <hidden> --region eu"),
        ("password:hunter2", "password:<hidden>"),
        ("error: token=abc: x=1", "error: token=<hidden> x=1"),
        ("api-key: 0123", "api-key: <hidden>"),
        ("clientKeyData: xyz", "clientKeyData: <hidden>"),
        ("GET https://jo:pw@host/x", "GET https://<hidden>@host/x"),
        ("key AKIAIOSFODNN7EXAMPLE is unknown", "key <hidden> is unknown"),
        ("k8s-aws-v1.aHR0cHM6Ly9zdHMuYW1hem9uYXdz", "<hidden>"),
        ("digest 0123456789abcdef0123456789abcdef", "digest <hidden>"),
        (f"here:\n{KEY}end", "here:\n<hidden>\nend"),
        (f"cut: {KEY[:200]}", "cut: <hidden>"),
        ("ya29.a0AfH6SM-x", "<hidden>"),
        ("xoxb-1234567890-AbCdEfGhIjKl", "<hidden>"),
    ],
)
def test_what_has_the_form_of_a_credential_is_hidden(text: str, expected: str) -> None:
    assert hide_secrets(text) == expected


ADVICE = """
Unable to locate credentials. You can configure credentials by running "aws configure".
An error occurred (AccessDenied) when calling the AssumeRole operation: User arn:aws:iam::123456789012:user/jo is not
The config profile (production) could not be found
Error loading SSO Token: <hidden> for https://example.awsapps.com/start does not exist
ERROR: (gcloud.config.config-helper) There was a problem refreshing your current auth tokens: <hidden> run:
  $ gcloud auth login
To sign in, use a web browser to open the page https://microsoft.com/devicelogin and enter the code ABCD12345
the token has expired
/usr/lib/python3/dist-packages/awscli/customizations/Eks/get_token.py: line 12
Request ID: 5f2c7b1e-94a1-4d8e-9f3b-0c1d2e3f4a5b
Traceback (most recent call last): ModuleNotFoundError: No module named 'botocore'
"""
"""What plugins say, with what is hidden of it needlessly."""


@pytest.mark.parametrize("line", ADVICE.strip().splitlines())
def test_what_says_what_to_do_stays(line: str) -> None:
    assert hide_secrets(line.replace("<hidden>", "Please")) == line


@pytest.mark.long
@pytest.mark.parametrize(
    "piece",
    [
        "-",
        "a",
        "token",
        "tok-",
        "aA1/",
        "://",
        "eyJ",
        "-----BEGIN A-----",
        "token='",
        " ",
        "bearer ",
        "--token ",
        "gha_",
    ],
)
def test_hiding_takes_milliseconds(piece: str) -> None:
    text = piece * (MAX_KEPT // len(piece))
    assert least_seconds(lambda: hide_secrets(text)) < 0.1


def test_known_secrets_are_hidden_wherever_they_are_the_longest_first() -> None:
    known = [Secret("abcdef"), Secret("abcdefghi"), Secret("dev"), Secret("")]
    assert hide_secrets("xabcdefghix abcdefx devices", known) == "x<hidden>x <hidden>x devices"
    assert hide_secrets("two-lines", [Secret("first\ntwo-lines\n")]) == "<hidden>"


def test_values_of_secret_arguments() -> None:
    arguments = ["get-token", "--token", "a", "--client-secret=b", "--region", "eu", "-password", "c", "--api-key"]
    assert [each.reveal() for each in secret_arguments(arguments)] == ["a", "b", "c"]


def test_words_that_were_printed() -> None:
    output = Secret(b'{"kind": "ExecCredential", "status": {"token": "s3cr3t-token", "x": "https://host/path"}}')
    assert {each.reveal() for each in printed_words(output)} == {"s3cr3t-token", "https://host/path"}


def added(*pieces: bytes) -> ErrorOutput:
    output = ErrorOutput()
    for piece in pieces:
        output.add(piece)
    return output


def test_the_text_is_one_line_of_the_last_characters() -> None:
    assert added(b"one\n", b" two\r\n\n").text([]) == "one two"
    assert added(b"").text([]) == ""
    text = added(b"word " * 1_000).text([])
    assert text.startswith("… word ")
    assert MAX_SHOWN - 10 < len(text) <= MAX_SHOWN + 2


def test_memory_is_bounded_and_what_is_forgotten_ends_with_a_line() -> None:
    output = added(*[b"abcdef\n" * 1_000] * 100)
    assert len(output._kept) <= MAX_KEPT
    assert output._kept.startswith(b"abcdef\n")
    assert output.text([]).startswith("… ")
    assert added(b"x" * (MAX_KEPT + 1))._kept == b""


def test_a_secret_at_the_edge_of_what_is_kept_is_not_shown_in_part() -> None:
    secret = b"s3cr3t-" * 8
    for missing in range(len(secret)):
        output = added(b"token is " + secret + b"\n", b"line\n" * ((MAX_KEPT - missing) // 5))
        assert "s3cr3t" not in output.text([Secret(secret.decode())])


def test_lines_are_taken_once_and_not_before_their_end() -> None:
    output = added(b"one\ntw")
    assert output.take_lines([], has_ended=False) == ["one"]
    assert not output.has_lines()
    output.add(b"o\n\nthree")
    assert output.has_lines()
    assert output.take_lines([], has_ended=False) == ["two"]
    assert output.take_lines([], has_ended=True) == ["three"]
    assert output.take_lines([], has_ended=True) == []


def test_lines_are_limited() -> None:
    output = added(b"line\n" * (MAX_LINES - 1))
    assert len(output.take_lines([], has_ended=False)) == MAX_LINES - 1
    output.add(b"line\n" * 10)
    assert output.take_lines([], has_ended=False) == ["line", "(further lines are not shown)"]
    output.add(b"line\n" * 10)
    assert output.take_lines([], has_ended=True) == []
    assert added(b"x" * 5_000).take_lines([], has_ended=True)[0].endswith("… (5000 characters)")


def test_lines_that_were_forgotten_are_not_shown_again() -> None:
    output = added(b"one\n" * 3)
    output.take_lines([], has_ended=False)
    output.add(b"two\n" * (MAX_KEPT // 4))
    assert set(output.take_lines([], has_ended=False)) == {"two", "(further lines are not shown)"}


def test_terminal_escapes_are_escaped() -> None:
    assert added(b"\x1b[31mred\x1b[0m\n").take_lines([], has_ended=False) == [r"\x1b[31mred\x1b[0m"]
    assert "s3cr3t" not in repr(added(b"s3cr3t"))

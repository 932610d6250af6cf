"""What a server URL, a token, a certificate or a namespace may be.

Each function raises :class:`CheckError`, a predicate such as "does not exist"; the caller knows of which file and key,
and turns it into a :class:`~trioformer.errors.ConfigError`.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_DNS_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_PEM = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----[ \t]*\r?\n(.*?)-----END \1-----", re.DOTALL)
_CERTIFICATE = "CERTIFICATE"
_PRIVATE_KEY = "PRIVATE KEY"


class CheckError(Exception):
    """What is wrong with a thing, as a predicate that follows its name; never shows a secret."""


class MissingError(CheckError):
    """The file is not there at all."""


def read_file(path: str) -> bytes:
    """Return a file's content.

    Raises:
        MissingError: It is not there.
        CheckError: It cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError as exc:
        raise MissingError("does not exist") from exc
    except OSError as exc:
        raise CheckError(f"cannot be read: {exc.strerror}") from exc
    except ValueError as exc:  # a NUL in the path
        raise CheckError("is not a path") from exc


def parse_server(url: str) -> str:
    """Return an API server's URL without trailing slash, query and fragment; a path stays.

    Raises:
        CheckError: It has no scheme or no host, or holds credentials, which belong elsewhere.
    """
    shown = "a URL with '@'" if "@" in url else repr(url)  # what stands before an @ may be a password
    malformed = CheckError(f"must be a URL such as 'https://host:6443', not {shown}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise malformed from None  # because its text may quote the password
    if port == 0 or not _VISIBLE.fullmatch(url):
        raise malformed
    if parts.scheme not in ("https", "http"):
        raise CheckError(f"must begin with https:// or http://, not {shown}")
    if "@" in parts.netloc:
        raise CheckError("must not hold a user name or password")
    if not parts.hostname:
        raise CheckError(f"has no host: {shown}")
    return f"{parts.scheme}://{parts.netloc.rstrip(':')}{parts.path.rstrip('/')}"


def parse_token(text: str) -> str:
    """Return a bearer token stripped of white space.

    Raises:
        CheckError: There is none, or it cannot be sent in a header.
    """
    token = text.strip()
    if not token:
        raise CheckError("is empty")
    if not _VISIBLE.fullmatch(token):
        raise CheckError("has characters that no bearer token can have (white space, control or non-ASCII characters)")
    return token


def check_namespace(name: str) -> None:
    """Check a namespace's name.

    Raises:
        CheckError: It is not a DNS label.
    """
    if not _DNS_LABEL.fullmatch(name):
        raise CheckError(f"must be a DNS label (lower-case letters, digits and '-', at most 63), not {name!r}")


def check_certificates(pem: bytes) -> None:
    """Check that there is a certificate in PEM armour; what is inside is for TLS to say.

    Raises:
        CheckError: There is none.
    """
    if not any(label == _CERTIFICATE for label, _ in _blocks(pem)):
        raise CheckError(f"holds no PEM certificate{_instead(pem)}")


def check_private_key(pem: bytes) -> None:
    """Check that there is a private key in PEM armour, one that needs no passphrase.

    OpenSSL would ask the terminal for a passphrase, and so stop the whole program.

    Raises:
        CheckError: There is none, or the first is encrypted.
    """
    for label, body in _blocks(pem):
        if label.endswith(_PRIVATE_KEY):
            if label.startswith("ENCRYPTED ") or b"Proc-Type: 4,ENCRYPTED" in body:
                raise CheckError("is encrypted with a passphrase, which is not supported; store it decrypted")
            return
    raise CheckError(f"holds no PEM private key{_instead(pem)}")


def _blocks(pem: bytes) -> list[tuple[str, bytes]]:
    return [(label.decode(), body) for label, body in _PEM.findall(pem)]


def _instead(pem: bytes) -> str:
    labels = dict.fromkeys(label for label, _ in _blocks(pem))
    return f", only {', '.join(labels)}" if labels else ""

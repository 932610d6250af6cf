"""The files of a certificate, and a manager without controllers."""

from __future__ import annotations

from typing import Any

import trio
import trustme

_ISSUED = trustme.CA().issue_cert("website-webhooks.websites.svc")
FILES = {
    "tls.crt": _ISSUED.cert_chain_pems[0].bytes().decode(),
    "tls.key": _ISSUED.private_key_pem.bytes().decode(),
}
initializers: dict[str, Any] = {}
stop = trio.Event()

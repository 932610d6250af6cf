"""The files of a certificate, a manager without controllers, and a kind of the example."""

from __future__ import annotations

import trio
import trustme

from examples.website_operator import Website, WebsiteSpec

__all__ = ["FILES", "Website", "WebsiteSpec", "initializers", "stop"]

_ISSUED = trustme.CA().issue_cert("website-webhooks.websites.svc")
FILES = {
    "tls.crt": _ISSUED.cert_chain_pems[0].bytes().decode(),
    "tls.key": _ISSUED.private_key_pem.bytes().decode(),
}
initializers: dict[str, object] = {}
stop = trio.Event()

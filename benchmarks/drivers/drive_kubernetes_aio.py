"""kubernetes.aio of the official client: kubernetes-asyncio under another name, so driven by the same code."""

from __future__ import annotations

import asyncio
import sys

import kubernetes.aio

sys.modules["kubernetes_asyncio"] = kubernetes.aio

from drive_kubernetes_asyncio import main  # noqa: E402  # it imports what the line above has named

if __name__ == "__main__":
    asyncio.run(main())

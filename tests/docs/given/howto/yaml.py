"""What the reader of ``docs/howto/yaml.rst`` has: a folder of manifests."""

from __future__ import annotations

from typing import Final

FILES: Final = {
    "deploy/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-file}\ndata: {size: '3'}\n",
}

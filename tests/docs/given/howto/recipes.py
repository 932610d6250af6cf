"""What the reader of ``docs/howto/recipes.rst`` has: a folder of manifests."""

from __future__ import annotations

from typing import Final

FILES: Final = {
    "deploy/web.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: shop, image: shop:1}]}
""",
}

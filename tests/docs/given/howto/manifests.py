"""The reader's manifests, and one with a mistake."""

from __future__ import annotations

SETTINGS = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}}"
FILES = {
    "deploy/settings.yaml": SETTINGS,
    "extra.yaml": SETTINGS.replace("settings", "extra"),
    "broken/twice.yaml": "kind: ConfigMap\nkind: ConfigMap\n",
}

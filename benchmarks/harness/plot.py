"""The plot of the documentation; run with the environment ``plot``, from the JSON of the newest results.

::

    .cache/bench/venvs/plot/bin/python benchmarks/harness/plot.py benchmarks/results docs/images/benchmarks.png
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt

PANELS = (
    ("sync10k", "wall", "10,000 pods from kube-apiserver:\nseconds until synced"),
    ("sync10k", "rss", "the same:\nmemory grown, MB"),
    ("storm50k", "cpu_per_event", "Storm of 10 KB events:\nCPU µs an event"),
    ("latency", "p99", "Write to handler, idle cluster:\np99, ms"),
)
COLOURS = {"trioformer": "#1b6ca8", "limit": "#9aa5b1", "client_go": "#00a29c"}


def draw(axes: Any, result: dict[str, Any], what: str, title: str) -> None:
    lines = [line for line in result["results"] if what in line["medians"]]
    lines.sort(key=lambda line: -line["medians"][what])
    values = [line["medians"][what] for line in lines]
    bars = axes.barh(
        [line["label"] for line in lines], values, color=[COLOURS.get(line["rival"], "#d0b17a") for line in lines]
    )
    axes.bar_label(
        bars, [f"{value:,.3g}" if value < 1000 else f"{value:,.0f}" for value in values], padding=3, fontsize=8
    )
    if max(values) > 20 * min(values):  # one that is slower by a hundred would leave the others no length
        axes.set_xscale("log")
        axes.set_xlim(min(values) / 3, max(values) * 4)
        title += " (logarithmic)"
    else:
        axes.set_xlim(0, max(values) * 1.15)
    axes.set_title(title, fontsize=10)
    axes.tick_params(labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def main() -> None:
    results, target = Path(sys.argv[1]), Path(sys.argv[2])
    panels = [
        (json.loads(path.read_text()), *rest) for name, *rest in PANELS if (path := results / f"{name}.json").exists()
    ]
    if not panels:
        return
    rows = (len(panels) + 1) // 2
    figure, grid = plt.subplots(rows, 2, figsize=(11, 3.6 * rows), squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.axis("off")
    for axes, (result, what, title) in zip(grid.flat, panels, strict=False):
        draw(axes, result, what, title)
    figure.tight_layout()
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()

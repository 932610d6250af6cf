"""Reads the exposed metrics as Prometheus does."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from trioformer.metrics import Metrics


def families(metrics: Metrics) -> Iterator[Metric]:
    """All metric families of a scrape, parsed from its text."""
    body, content_type = metrics.render()
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    yield from text_string_to_metric_families(body.decode())


def samples(metrics: Metrics, name: str, /, **labels: str) -> list[Sample]:
    """The samples of a metric that have at least these labels."""
    return [
        sample
        for family in families(metrics)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]


def value(metrics: Metrics, name: str, /, **labels: str) -> float:
    """The value of the only sample of a metric that has at least these labels."""
    (sample,) = samples(metrics, name, **labels)
    return float(sample.value)


def by_label(metrics: Metrics, name: str, label: str, /, **labels: str) -> dict[str, float]:
    """The values of a metric's samples, by one label."""
    found = samples(metrics, name, **labels)
    assert len({sample.labels[label] for sample in found}) == len(found)
    return {sample.labels[label]: float(sample.value) for sample in found}

"""What the drivers of ``commands.py`` share: a short command many times, and one with a long output.  Only the standard
library."""

from __future__ import annotations

import argparse
import resource

import measure
from measure import Meter

POD, NAMESPACE = "one", "default"
SHORT = ["true"]


def options() -> argparse.Namespace:
    """Parse what is asked of a driver."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--times", type=int, required=True, help="how often the short command is executed")
    parser.add_argument("--size", type=int, required=True, help="bytes that the other command writes")
    return parser.parse_args()


def long(size: int) -> list[str]:
    """The command with an output of so many bytes."""
    return ["head", "-c", str(size), "/dev/zero"]


class Measurements:
    """Measures one command after the other."""

    def __init__(self) -> None:
        self._found: dict[str, object] = {}
        self._meter = Meter()

    def begin(self) -> None:
        self._meter = Meter()

    def end(self, name: str) -> None:
        result = self._meter.read()
        self._found |= {f"{name}_wall": result["wall"], f"{name}_cpu": result["cpu"]}

    def finish(self, expected: int, received: int) -> None:
        """Say what was measured, and end; the output must be whole."""
        if received != expected:
            raise SystemExit(f"error: {received} of {expected} bytes were received")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        measure.finish({**self._found, "peak": peak})

"""``import trio`` alone: what every program on trio takes."""

from __future__ import annotations

import measure
import trio

measure.options()
assert trio
measure.finish(measure.whole_process())

"""What other packages of trioformer use."""

from __future__ import annotations

from ._install import wait_until_served as wait_until_served

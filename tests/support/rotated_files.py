"""Files of credentials that are rotated under a program."""

from __future__ import annotations

import os
import time
from pathlib import Path


def rotate(file: Path, content: bytes | str, *, age: float = 10.0) -> None:
    """Write a file, and date it ``age`` seconds back: it is not being written any more."""
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    date = time.time() - age
    os.utime(file, (date, date))

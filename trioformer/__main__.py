"""``python -m trioformer``: the command line tool, also installed as ``trioformer``."""

from __future__ import annotations

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())

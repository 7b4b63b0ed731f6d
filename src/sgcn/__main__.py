"""``python -m sgcn``: the same as the console script ``sgcn``."""

from __future__ import annotations

import sys

from sgcn.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""Refuse what does not fit into memory before any work is done."""

from __future__ import annotations

import os
from pathlib import Path

from sgcn.errors import SgcnError

_MEMINFO = Path("/proc/meminfo")


def check_memory(needed: int, what: str, remedy: str) -> None:
    """Make sure that ``needed`` bytes for ``what`` are free."""
    there = available()
    if needed > there:
        raise SgcnError(
            f"{what} need {needed / 2**30:.1f} GB of memory, expected at most the "
            f"{there / 2**30:.1f} GB that are free: {remedy}"
        )


def available() -> int:
    """Bytes of memory that can be had without swapping."""
    try:
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

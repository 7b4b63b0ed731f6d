"""What the machine has and what this process took of it."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from sgcn.errors import SgcnError

_MEMINFO = Path("/proc/meminfo")
_STATUS = Path("/proc/self/status")


def physical_memory() -> int:
    """Bytes of memory that the machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def available_memory() -> int:
    """Bytes of memory that can be had without swapping."""
    found = _kilobytes(_MEMINFO, "MemAvailable")
    return physical_memory() if found is None else found * 1024


def resident_memory() -> int:
    """Bytes of this process that are in memory now."""
    found = _kilobytes(_STATUS, "VmRSS")
    return peak_memory() if found is None else found * 1024


def peak_memory() -> int:
    """The most bytes of this process that were in memory at one time."""
    found = _kilobytes(_STATUS, "VmHWM")  # getrusage also counts what was there before exec
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if found is None else found) * 1024


def check_memory(needed: int, what: str, remedy: str) -> None:
    """Make sure that ``needed`` bytes for ``what`` are free."""
    there = available_memory()
    if needed > there:
        raise SgcnError(
            f"{what} need {needed / 2**30:.1f} GB of memory, expected at most the "
            f"{there / 2**30:.1f} GB that are free: {remedy}"
        )


def _kilobytes(path: Path, name: str) -> int | None:
    """The number after ``name`` in a table of the system; None where there is no such table."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), None)

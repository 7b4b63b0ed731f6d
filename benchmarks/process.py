"""A measurement in a process of its own: its own threads, and its own peak of memory."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.report import write
from sgcn.errors import SgcnError

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


_ROOT = Path(__file__).resolve().parents[1]


def importable() -> dict[str, str]:
    """The environment of a process that finds this package, whatever folder it starts in."""
    paths = [str(_ROOT), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def environment(threads: int, **more: str) -> dict[str, str]:
    """The environment of a process that computes with so many threads."""
    waits = {"OMP_WAIT_POLICY": "passive"}  # as the command line sets it
    return importable() | dict.fromkeys(_THREADS, str(threads)) | waits | more


def call(module: str, order: dict[str, Any], out: Path, threads: int) -> dict[str, Any]:
    """Run ``python -m module ORDER.json out`` and read what it wrote to ``out``."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(order, file)
        file.flush()
        command = [sys.executable, "-m", module, file.name, str(out)]
        done = subprocess.run(
            command, env=environment(threads), stderr=subprocess.PIPE, text=True, check=False
        )
    if done.returncode == 130:
        raise KeyboardInterrupt
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"it ended with code {done.returncode}"])[-1]
        raise SgcnError(f"a measurement failed ({last}), expected its process to end by itself")
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def answer(run: Callable[[dict[str, Any]], dict[str, Any]]) -> int:
    """The other side of `call`: the exit code."""
    try:
        write(Path(sys.argv[2]), run(json.loads(Path(sys.argv[1]).read_text())))
    except SgcnError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def peak_mb() -> float:
    """The most memory that the process held since `forget_peak`.

    ``ru_maxrss`` would include what the parent held when it started this process.
    """
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def forget_peak() -> None:
    """Count the peak anew from here, where the system can do that."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")

"""What the command line does to its own process to start fast and to say why it waits.

`sgcn.cli.main` calls these functions by name. Importing sgcn does none of it: a program that uses
the library keeps its modules, its environment and its messages.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module
from typing import Any

COMPILING = "sgcn: compiling kernels for this machine; it is done once and takes up to a minute"


def wait_passively() -> None:
    """Let idle OpenMP threads sleep. torch's and numba's take turns, and one that spins while it
    waits costs the other a core."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def skip_scipy_blas() -> None:
    """Keep numba from loading scipy's BLAS: a third of a second, for kernels that call np.dot.

    No kernel of sgcn does. A program that imports sgcn may have some, so the library leaves it.
    """
    modules: dict[str, Any] = sys.modules
    name = "scipy.linalg"
    if name not in modules:
        modules[name] = None  # makes an import of it fail
        import_module("numba.np.arraymath")  # it looks for BLAS once, when it is imported
        del modules[name]


@cache
def announce_compiling() -> None:
    """Print `COMPILING` to stderr when numba compiles the first kernel of sgcn.

    That takes a while and would look like a hang. Kernels from the cache on disk print nothing.
    """
    from numba.core import event

    class Notice(event.Listener):
        printed = False

        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            if not self.printed and function.__module__.startswith("sgcn."):
                self.printed = True
                # Not sys.stderr: whoever replaced it wants a command's messages, not this one.
                print(COMPILING, file=sys.__stderr__, flush=True)

        def on_end(self, event: Any) -> None: ...

    event.register("numba:compile", Notice())  # type: ignore[no-untyped-call]  # numba is untyped

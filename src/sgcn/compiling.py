"""Say that kernels are being compiled: it happens once, takes a while, and looks like a hang."""

from __future__ import annotations

import sys
from typing import Any

#: Whether to say so: the command line does, Python leaves it to the caller.
loud = False
WORDS = "sgcn: compiling kernels for this machine; it is done once and takes up to a minute"


def announce() -> None:
    """If `loud`, print `WORDS` to stderr when numba compiles the first kernel of ours, once.

    Kernels that come from the cache on disk say nothing.
    """
    from numba.core import event

    class Notice(event.Listener):
        said = False

        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            if loud and not self.said and function.__module__.startswith("sgcn."):
                self.said = True
                # Not sys.stderr: who replaced it wants what a command says, not this.
                print(WORDS, file=sys.__stderr__, flush=True)

        def on_end(self, event: Any) -> None: ...

    event.register("numba:compile", Notice())  # type: ignore[no-untyped-call]  # numba is untyped

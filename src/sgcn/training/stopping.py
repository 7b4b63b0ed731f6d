"""Ctrl-C and SIGTERM while training: the step is finished, and then the run ends in order."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self


class StopRequest:
    """Within its ``with`` the first signal is kept as ``signal``; another one acts as always.

    Only the main thread hears signals; elsewhere nothing is changed.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._heard) or signal.SIG_DFL
        return self

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        self.__exit__()

    def __exit__(self, *failure: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

"""Work that is done ahead of its use, in threads."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Prefetcher:
    """Runs jobs ahead of their use in threads; with no threads it runs them when they are taken.

    For loops that cannot say for certain what comes next: a job that was announced and is never
    taken costs only its time.
    """

    def __init__(self, threads: int) -> None:
        self._ahead: dict[Hashable, Future[Any]] = {}
        self._pool = ThreadPoolExecutor(threads, "sgcn-sample") if threads else None

    def take(self, jobs: Sequence[tuple[Hashable, Callable[[], Any]]]) -> Any:
        """The result of the first of ``jobs``, named pairs; the others are started as well."""
        if self._pool is None:
            return jobs[0][1]()
        wanted = {key for key, _ in jobs}
        for key in [key for key in self._ahead if key not in wanted]:
            self._ahead.pop(key).cancel()
        for key, job in jobs:
            if key not in self._ahead:
                self._ahead[key] = self._pool.submit(job)
        return self._ahead.pop(jobs[0][0]).result()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

"""Learning rates over a run: factors of `optimizer.lr`. A new one is a class here and a line."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

from sgcn.options import Options, between, integer, option


@dataclass(frozen=True)
class Rate(Options):
    """A learning rate's course."""

    @abstractmethod
    def factor(self, done: float, step: int, cuts: int) -> float:
        """At ``step``, a share ``done`` of the run, after ``cuts`` for want of a better score."""

    @property
    def cuts_after(self) -> float:
        """Steps without a better score that call for a cut."""
        return math.inf


@dataclass(frozen=True)
class Constant(Rate):
    """The same all the time."""

    def factor(self, done: float, step: int, cuts: int) -> float:
        return 1.0


@dataclass(frozen=True)
class Cosine(Rate):
    """Half a wave of a cosine down to 0."""

    def factor(self, done: float, step: int, cuts: int) -> float:
        return 0.5 + 0.5 * math.cos(math.pi * done)


@dataclass(frozen=True)
class Steps(Rate):
    """Down a stair."""

    stair: int = option(1000, integer(), "steps between cuts of the learning rate")
    cut: float = option(0.3, between(0.0, 1.0), "factor of a cut")

    def factor(self, done: float, step: int, cuts: int) -> float:
        return float(self.cut ** (step // self.stair))


@dataclass(frozen=True)
class Plateau(Rate):
    """Cut where scores get no better."""

    wait: int = option(200, integer(), "steps without a better score before a cut")
    cut: float = option(0.3, between(0.0, 1.0), "factor of a cut")

    @property
    def cuts_after(self) -> float:
        return self.wait

    def factor(self, done: float, step: int, cuts: int) -> float:
        return float(self.cut**cuts)


@dataclass(frozen=True)
class OneCycle(Rate):
    """Up from a twenty-fifth for the first 30 %, then down to nearly nothing, by cosines."""

    rise: float = option(0.3, between(0.0, 1.0), "share of the run in which it rises")

    def factor(self, done: float, step: int, cuts: int) -> float:
        if done < self.rise:
            return 0.04 + 0.96 * (0.5 - 0.5 * math.cos(math.pi * done / self.rise))
        left = (1.0 - done) / max(1.0 - self.rise, 1e-9)
        return 0.5 - 0.5 * math.cos(math.pi * left)


RATES: dict[str, type[Rate]] = {
    "constant": Constant,
    "cosine": Cosine,
    "step": Steps,
    "plateau": Plateau,
    "one-cycle": OneCycle,
}

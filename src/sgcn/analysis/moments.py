"""Mean-square errors from a few draws: their parts, without the bias of few draws, with error bars.

All errors are standard errors by the jackknife: the spread of what is found when each draw in turn
is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]


class Mean(NamedTuple):
    """A mean and its standard error; NaN where there is none."""

    value: float
    error: float

    @staticmethod
    def of(values: Sequence[float] | Float64) -> Mean:
        """Of independent draws."""
        each = np.asarray(values, np.float64)
        error = each.std(ddof=1) / math.sqrt(len(each)) if len(each) > 1 else math.nan
        return Mean(float(each.mean()), float(error))


@dataclass(frozen=True)
class Split:
    """E|g - G|^2 = |E g - G|^2 + E|g - E g|^2, each over |G|^2."""

    mse: Mean
    bias2: Mean
    variance: Mean

    @staticmethod
    def of(products: Float64, size: float) -> Split:
        """From the inner products <e_i, e_j> of the errors e = g - G of n draws; |G|^2 is ``size``.

        |mean e|^2 is too large by variance / n. The mean of <e_i, e_j> over all pairs i != j is
        what is left without that; it may come out below 0 where there is no bias.
        """
        n = len(products)
        own = np.diagonal(products)
        others = products.sum(1) - own
        left_out = (own.sum() - own) / (n - 1)
        mse, bias2 = own.mean(), others.sum() / (n * (n - 1))
        # Two draws have one pair: without one of them there is none.
        pairs = (others.sum() - 2.0 * others) / ((n - 1) * (n - 2)) if n > 2 else others * math.nan
        scale = 1.0 / size if size > 0 else math.nan
        return Split(
            Mean(float(mse) * scale, jackknife(left_out) * scale),
            Mean(float(bias2) * scale, jackknife(pairs) * scale),
            Mean(float(mse - bias2) * scale, jackknife(left_out - pairs) * scale),
        )

    def as_dict(self) -> dict[str, float | None]:
        return numbers(
            relative_mse=self.mse, relative_bias2=self.bias2, relative_variance=self.variance
        )


def over(parts: Sequence[Any]) -> Any:
    """The mean of several `Mean`, or of values made of such, known independently of each other."""
    kind, n = type(parts[0]), len(parts)
    if kind is Mean:
        error = math.sqrt(sum(part.error**2 for part in parts)) / n
        return Mean(sum(part.value for part in parts) / n, error)
    if not is_dataclass(kind):
        return parts[0]  # the layer that they all are of
    return kind(*(over([getattr(part, f.name) for part in parts]) for f in fields(kind)))


def numbers(**means: Mean | None) -> dict[str, float | None]:
    """Numbers and their errors, for JSON; null where there is none."""
    found: dict[str, float | None] = {}
    for name, mean in means.items():
        value, error = (math.nan, math.nan) if mean is None else (mean.value, mean.error)
        found[name] = value if math.isfinite(value) else None
        found[f"{name}_error"] = error if math.isfinite(error) else None
    return found


def jackknife(left_out: Sequence[float] | Float64) -> float:
    """The standard error of an estimate, from its values with each draw in turn left out."""
    each = np.asarray(left_out, np.float64)
    n = len(each)
    return math.sqrt((n - 1) / n * float(np.square(each - each.mean()).sum()))

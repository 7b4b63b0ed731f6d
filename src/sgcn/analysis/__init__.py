"""What a sampler and an estimator do to the gradient, as numbers: error, bias and variance."""

from __future__ import annotations

from sgcn.analysis.moments import Mean, Split
from sgcn.analysis.probe import GradientProbe, Measured
from sgcn.analysis.theory import PropagationError, propagation_error

__all__ = [
    "GradientProbe",
    "Mean",
    "Measured",
    "PropagationError",
    "Split",
    "propagation_error",
]

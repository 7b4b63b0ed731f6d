"""A moving average of weights: where gradients are noisy, the mean of their path is better."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """A <- d A + (1 - d) W after every step, with d = min(decay, t / (t + 9)) at step t.

    The average lags by about 1 / (1 - decay) steps; the small d of the first steps lets it forget
    where training began.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.model, self.decay = model, decay
        self.steps = 0
        self.weights = {k: p.detach().clone() for k, p in model.named_parameters()}

    @torch.no_grad()
    def update(self) -> None:
        """Take in the model's weights, once after every step."""
        self.steps += 1
        kept = min(self.decay, self.steps / (self.steps + 9))
        for name, parameter in self.model.named_parameters():
            self.weights[name].lerp_(parameter, 1.0 - kept)

    @contextmanager
    def swapped(self) -> Iterator[None]:
        """The model has the average for its weights, inside."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        for name, parameter in self.model.named_parameters():
            parameter.data, self.weights[name] = self.weights[name], parameter.data

    def load(self, tensors: dict[str, Tensor], steps: int) -> None:
        """Go on from what a checkpoint kept under ``average.NAME``; KeyError if it kept none."""
        self.weights = {name: tensors[f"average.{name}"] for name in self.weights}
        self.steps = steps

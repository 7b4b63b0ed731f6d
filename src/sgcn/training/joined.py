"""One optimiser of several, each of which moves some of the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import unwrap
from typing import Any

from torch.optim import Optimizer


class Joined(Optimizer):
    """The groups of its ``parts`` one after another, and one state for all of them."""

    def __init__(self, parts: Sequence[Optimizer]) -> None:
        self.parts = parts
        super().__init__([group for part in parts for group in part.param_groups], {})
        self._share()

    def _share(self) -> None:
        groups = iter(self.param_groups)
        for part in self.parts:
            part.state = self.state
            part.param_groups = [next(groups) for _ in part.param_groups]

    def step(self, closure: Any = None) -> Any:
        for part in self.parts:
            part.step()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        unwrap(Optimizer.load_state_dict)(self, state_dict)  # without torch's compiler, see above
        self._share()

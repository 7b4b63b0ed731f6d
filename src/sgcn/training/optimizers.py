"""Optimisers of torch that start at once.

A torch optimiser loads torch's compiler (`torch._dynamo`, with sympy and more: 800 modules, over a
second) when it is made and again asks for it in every step, only to tell it to stay away. Nothing
here is compiled by it.
"""

from __future__ import annotations

from inspect import unwrap
from typing import Any

import torch
from torch.optim import Optimizer


def light(kind: type[Optimizer]) -> type[Optimizer]:
    """``kind`` with the same arithmetic and state, and without the compiler."""
    for name in ("add_param_group", "zero_grad", "state_dict", "load_state_dict"):
        bare = unwrap(getattr(Optimizer, name))
        # Where torch keeps the version of a function that the compiler leaves alone.
        setattr(bare, "__dynamo_disable", bare)
    step: Any = torch.no_grad()(unwrap(kind.step))
    return type(kind.__name__, (kind,), {"step": step, "__doc__": kind.__doc__})

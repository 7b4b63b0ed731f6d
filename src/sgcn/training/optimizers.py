"""Optimisers of torch by name, for `fit` and the command line alike; they start at once.

A torch optimiser loads torch's compiler (`torch._dynamo`, with sympy and more: 800 modules, over a
second) when it is made and again asks for it in every step, only to tell it to stay away. Nothing
here is compiled by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import unwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the names are read where nothing waits for torch
    from torch import Tensor
    from torch.optim import Optimizer

    from sgcn.training.options import OptimizerOptions

    #: Makes an optimiser of some parameters.
    Factory = Callable[[Iterable[Tensor]], Optimizer]


@dataclass(frozen=True)
class Kind:
    """A class of torch.optim: which of our options it takes, and whether it has a fused step."""

    name: str
    takes: tuple[str, ...] = ("weight_decay",)
    fused: bool = False


#: Every optimiser by name. A new one is a line.
OPTIMIZERS: dict[str, Kind] = {
    "adam": Kind("Adam", fused=True),
    "adamw": Kind("AdamW", fused=True),
    "sgd": Kind("SGD", ("weight_decay", "momentum"), fused=True),
    "rmsprop": Kind("RMSprop", ("weight_decay", "momentum")),
    "adagrad": Kind("Adagrad", fused=True),
    "adadelta": Kind("Adadelta"),
    "adamax": Kind("Adamax"),
    "asgd": Kind("ASGD"),
    "nadam": Kind("NAdam"),
    "radam": Kind("RAdam"),
    "rprop": Kind("Rprop", ()),
}


def missing_options(name: str) -> Sequence[str]:
    """The options of [optimizer] that the optimiser ``name`` does not take."""
    return [key for key in ("weight_decay", "momentum") if key not in OPTIMIZERS[name].takes]


def make_optimizer(options: OptimizerOptions, parameters: Iterable[Tensor]) -> Optimizer:
    """The optimiser that ``options`` describe."""
    import torch

    kind = OPTIMIZERS[options.name]
    make: Callable[..., Optimizer] = without_dynamo(getattr(torch.optim, kind.name))
    given = {key: getattr(options, key) for key in kind.takes}
    extra: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if kind.fused:  # one loop over the numbers in place of ten
        extra["fused"] = True
    return make(parameters, lr=options.lr, **extra)


@cache
def without_dynamo(kind: type[Optimizer]) -> type[Optimizer]:
    """A subclass of ``kind`` with the same arithmetic and state that never loads the compiler.

    Torch's own methods are wrappers that import it; the subclass has the functions inside them.
    """
    import torch

    names = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
    bare: dict[str, Any] = {name: unwrap(getattr(kind, name)) for name in names}
    bare["step"] = torch.no_grad()(unwrap(kind.step))
    return type(kind.__name__, (kind,), {**bare, "__doc__": kind.__doc__})

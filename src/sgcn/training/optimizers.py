"""Optimisers of torch by name, for `fit` and the command line alike; they start at once.

A torch optimiser loads torch's compiler (`torch._dynamo`, with sympy and more: 800 modules, over a
second) when it is made and again asks for it in every step, only to tell it to stay away. Nothing
here is compiled by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, make_dataclass
from functools import cache
from inspect import unwrap
from typing import TYPE_CHECKING, Any, ClassVar

from sgcn.errors import SgcnError
from sgcn.options import Options, Rule, flag, integer, option, optional, real, share

if TYPE_CHECKING:  # the names are read where nothing waits for torch
    from torch import Tensor
    from torch.optim import Optimizer

    #: Makes an optimiser of some parameters.
    Factory = Callable[[Iterable[Tensor]], Optimizer]


@dataclass(frozen=True)
class Kind(Options):
    """A class of torch.optim with its own options, which go to it as they are."""

    torch_name: ClassVar[str]
    usual_lr: ClassVar[float] = 0.01
    #: It has one loop over the numbers in place of ten.
    fused: ClassVar[bool] = False

    def make(self, parameters: Iterable[Tensor], lr: float) -> Optimizer:
        import torch

        made = without_dynamo(getattr(torch.optim, self.torch_name))
        options = self.values() | ({"fused": True} if self.fused else {})
        try:
            return made(parameters, lr=lr, **options)
        except ValueError as error:  # options that do not go together
            raise SgcnError(f"{self.title()}: {error}, expected other options of it") from None


_MOST_ROWS = 16384  # of a matrix that Muon moves


@dataclass(frozen=True)
class Muon(Kind):
    """Matrices take orthogonalised steps, as large as Adam's; Adam moves everything else.

    Also matrices of so many rows that to orthogonalise them would cost more than all of a step.
    """

    torch_name = "Muon"
    usual_lr = 0.02

    momentum: float = option(0.95, share(), "decay of the mean gradient")
    weight_decay: float = option(0.0, real(0.0), "share of the weights, times lr, lost at a step")
    ns_steps: int = option(5, integer(), "iterations of Newton and Schulz that orthogonalise")
    adam_lr: float | None = option(
        None, optional(real(0.0, open_=True)), "lr of what is no matrix; none: half of lr"
    )

    def make(self, parameters: Iterable[Tensor], lr: float) -> Optimizer:
        import torch

        from sgcn.training.joined import Joined

        given = list(parameters)
        small = [p.ndim == 2 and max(p.shape) <= _MOST_ROWS for p in given]
        matrices, others = (
            [p for p, taken in zip(given, small, strict=True) if taken == so]
            for so in (True, False)
        )
        parts: list[Optimizer] = []
        if matrices:
            parts.append(without_dynamo(torch.optim.Muon)(
                matrices, lr=lr, momentum=self.momentum, weight_decay=self.weight_decay,
                ns_steps=self.ns_steps, adjust_lr_fn="match_rms_adamw",
            ))  # fmt: skip
        if others:
            adam = lr / 2 if self.adam_lr is None else self.adam_lr
            parts.append(without_dynamo(torch.optim.Adam)(others, lr=adam, fused=True))
        return parts[0] if len(parts) == 1 else without_dynamo(Joined)(parts)


def _has_two(value: Any, of: Rule) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(of.test, value))


@dataclass(frozen=True)
class Auto(Muon):
    """Muon, or Adam where a trial of `sgcn train` finds it better."""


#: What torch's optimisers take, by torch's own names: a rule, and what it means.
_OPTIONS: dict[str, tuple[Rule, str]] = {
    "weight_decay": (real(0.0), "decay of the weights"),
    "momentum": (share(), "of the steps before"),
    "dampening": (share(), "of what the gradient adds to the momentum"),
    "nesterov": (flag(), "momentum by Nesterov's rule"),
    "betas": (
        Rule("two numbers from 0 to below 1", lambda v: _has_two(v, share())),
        "decay of the means of the gradient and of its square",
    ),
    "eps": (real(0.0), "least divisor"),
    "amsgrad": (flag(), "divide by the largest mean square so far"),
    "alpha": (share(), "decay of the mean square"),
    "centered": (flag(), "divide by the variance in place of the mean square"),
    "rho": (share(), "decay of the mean squares"),
    "lr_decay": (real(0.0), "of the learning rate, at each step"),
    "initial_accumulator_value": (real(0.0), "sum of squares at the start"),
    "momentum_decay": (real(0.0), "of the momentum, at each step"),
    "lambd": (real(0.0), "decay term"),
    "t0": (real(0.0), "step at which averaging starts"),
    "etas": (
        Rule("two numbers above 0", lambda v: _has_two(v, real(0.0, open_=True))),
        "factors of a step that shrinks and of one that grows",
    ),
}


def _kind(torch_name: str, *, fused: bool = False, **defaults: Any) -> type[Kind]:
    """An optimiser whose options have ``defaults``."""
    fields = [(key, Any, option(value, *_OPTIONS[key])) for key, value in defaults.items()]
    static = {"torch_name": torch_name, "fused": fused, "__module__": __name__}
    return make_dataclass(torch_name, fields, bases=(Kind,), namespace=static, frozen=True)


_MEANS: dict[str, Any] = {"betas": (0.9, 0.999), "eps": 1e-8}
#: Every optimiser by name. A new one is a line.
OPTIMIZERS: dict[str, type[Kind]] = {
    "auto": Auto,
    "adam": _kind("Adam", fused=True, weight_decay=0.0, **_MEANS, amsgrad=False),
    "adamw": _kind("AdamW", fused=True, weight_decay=0.01, **_MEANS, amsgrad=False),
    "muon": Muon,
    "sgd": _kind(
        "SGD", fused=True, weight_decay=0.0, momentum=0.0, dampening=0.0, nesterov=False
    ),
    "rmsprop": _kind(
        "RMSprop", weight_decay=0.0, momentum=0.0, alpha=0.99, eps=1e-8, centered=False
    ),
    "adagrad": _kind(
        "Adagrad", fused=True, weight_decay=0.0, lr_decay=0.0, initial_accumulator_value=0.0,
        eps=1e-10,
    ),
    "adadelta": _kind("Adadelta", weight_decay=0.0, rho=0.9, eps=1e-6),
    "adamax": _kind("Adamax", weight_decay=0.0, **_MEANS),
    "asgd": _kind("ASGD", weight_decay=0.0, lambd=1e-4, alpha=0.75, t0=1e6),
    "nadam": _kind("NAdam", weight_decay=0.0, **_MEANS, momentum_decay=4e-3),
    "radam": _kind("RAdam", weight_decay=0.0, **_MEANS),
    "rprop": _kind("Rprop", etas=(0.5, 1.2)),
}  # fmt: skip


@cache
def without_dynamo(kind: type[Optimizer]) -> Callable[..., Optimizer]:
    """A subclass of ``kind`` with the same arithmetic and state that never loads the compiler.

    Torch's own methods are wrappers that import it; the subclass has the functions inside them.
    """
    import torch

    names = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
    bare: dict[str, Any] = {name: unwrap(getattr(kind, name)) for name in names}
    bare["step"] = torch.no_grad()(unwrap(kind.step))
    return type(kind.__name__, (kind,), {**bare, "__doc__": kind.__doc__})

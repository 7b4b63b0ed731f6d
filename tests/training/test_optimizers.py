"""Optimisers by name: those of torch, without its compiler, the same for `fit` and the command."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch.optim import Optimizer

from sgcn import SgcnError
from sgcn.training.optimizers import OPTIMIZERS, make_optimizer, without_dynamo
from sgcn.training.options import OptimizerOptions

METHODS = ("add_param_group", "zero_grad", "state_dict", "load_state_dict", "step")


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.SGD, torch.optim.RMSprop])
def test_without_dynamo_they_do_the_same(kind):
    weights = [torch.nn.Parameter(torch.linspace(-1, 1, 7)) for _ in range(2)]
    kinds = (kind, without_dynamo(kind))
    optimizers = [made([w], lr=0.1) for made, w in zip(kinds, weights, strict=True)]
    for step in range(5):
        for weight, optimizer in zip(weights, optimizers, strict=True):
            weight.grad = (weight.detach() ** 3 + step).clone()
            optimizer.step()
    assert torch.equal(*weights)
    optimizers[0].load_state_dict(optimizers[1].state_dict())


def test_they_leave_the_compiler_alone():
    code = (
        "import sys, torch\n"
        "from sgcn.training.optimizers import OPTIMIZERS, make_optimizer\n"
        "from sgcn.training.options import OptimizerOptions\n"
        "for name in OPTIMIZERS:\n"
        "    w = torch.nn.Parameter(torch.ones(3)); w.grad = torch.ones(3)\n"
        "    o = make_optimizer(OptimizerOptions(name), [w]); o.step()\n"
        "    o.load_state_dict(o.state_dict()); o.zero_grad()\n"
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_torch_is_left_as_it_is():
    """Its classes have the methods that they had, and those carry no mark of ours."""
    code = (
        "import inspect, sys, torch\n"
        "from torch.optim import Adam, Optimizer\n"
        f"kept = [vars(k).get(n) for k in (Optimizer, Adam) for n in {METHODS}]\n"
        "from sgcn.training.optimizers import without_dynamo\n"
        "w = torch.nn.Parameter(torch.ones(3)); w.grad = torch.ones(3)\n"
        "o = without_dynamo(Adam)([w], lr=0.1); o.step(); o.load_state_dict(o.state_dict())\n"
        f"assert kept == [vars(k).get(n) for k in (Optimizer, Adam) for n in {METHODS}]\n"
        "for method in filter(None, kept):\n"
        "    assert not hasattr(inspect.unwrap(method), '__dynamo_disable'), method\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_name_makes_its_kind(name):
    given = dict.fromkeys(OPTIMIZERS[name].takes, 0.25)
    weight = torch.nn.Parameter(torch.ones(3))
    made = make_optimizer(OptimizerOptions(name, lr=0.5, **given), [weight])
    assert isinstance(made, getattr(torch.optim, OPTIMIZERS[name].name))
    assert isinstance(made, Optimizer)
    (group,) = made.param_groups
    assert {key: group[key] for key in given} == given
    assert group["lr"] == 0.5
    assert bool(group.get("fused")) == OPTIMIZERS[name].fused


def test_an_option_that_an_optimiser_does_not_have():
    with pytest.raises(SgcnError, match=r"^optimizer: momentum is 0.9, expected 0: adam has none$"):
        OptimizerOptions("adam", momentum=0.9)

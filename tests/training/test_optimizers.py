"""Optimisers by name: those of torch, without its compiler, the same for `fit` and the command."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from learning import labelled, small_model
from sgcn import SgcnError, fit
from sgcn.training.events import StepEvent
from sgcn.training.loop import clipped
from sgcn.training.optimizers import OPTIMIZERS, without_dynamo
from sgcn.training.options import OptimizerOptions
from sgcn.training.sinks import Sink

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
        "from sgcn.training.optimizers import OPTIMIZERS\n"
        "from sgcn.training.options import OptimizerOptions\n"
        "for name in OPTIMIZERS:\n"
        "    w = [torch.nn.Parameter(torch.ones(3, 2)), torch.nn.Parameter(torch.ones(3))]\n"
        "    for p in w: p.grad = torch.ones_like(p)\n"
        "    o = OptimizerOptions(name).make(w); o.step()\n"
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


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name not in ("auto", "muon")])
def test_every_name_has_the_options_of_torch(name):
    """With torch's own defaults but for the learning rate, and they go where they belong."""
    kind, weight = OPTIMIZERS[name], torch.nn.Parameter(torch.ones(3))
    theirs = getattr(torch.optim, kind.torch_name)
    (usual,) = theirs([weight], lr=0.5).param_groups
    (group,) = OptimizerOptions(name, lr=0.5).make([weight]).param_groups
    assert bool(group.pop("fused", False)) == kind.fused
    assert group.items() <= usual.items()
    other = {"weight_decay": 0.25} if "weight_decay" in group else {"etas": (0.25, 2.0)}
    made = OptimizerOptions.of({"name": name, "lr": 0.5, **other}).make([weight])
    assert other.items() <= made.param_groups[0].items()
    assert isinstance(made, theirs)


def test_muon_moves_matrices_and_adam_the_rest():
    """Against torch's two optimisers side by side, also after a state was put back."""
    torch.manual_seed(0)
    start = [torch.randn(6, 4), torch.randn(4), torch.randn(4, 3)]
    ours, theirs = ([torch.nn.Parameter(p.clone()) for p in start] for _ in range(2))
    both = OptimizerOptions("muon").make(ours)
    muon = torch.optim.Muon([theirs[0], theirs[2]], lr=0.02, weight_decay=0.0,
                            adjust_lr_fn="match_rms_adamw")  # fmt: skip
    adam = torch.optim.Adam([theirs[1]], lr=0.01)
    for step in range(6):
        for one, other in zip(ours, theirs, strict=True):
            one.grad = torch.sin(one.detach() + step)
            other.grad = one.grad.clone()
        if step == 3:
            saved, both = both.state_dict(), OptimizerOptions("muon").make(ours)
            both.load_state_dict(saved)
        for optimizer in (both, muon, adam):
            optimizer.step()
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)
    assert not torch.equal(ours[0], start[0])


def test_muon_of_one_kind_of_parameters_alone():
    for parameters in ([torch.ones(3)], [torch.ones(3, 2)]):
        made = OptimizerOptions("muon").make([torch.nn.Parameter(p) for p in parameters])
        assert len(made.param_groups) == 1


def test_an_option_that_an_optimiser_does_not_have():
    with pytest.raises(SgcnError, match=r"'momentum' \(it belongs to name = auto or muon"):
        OptimizerOptions.of({"name": "adam", "momentum": 0.9})
    with pytest.raises(SgcnError, match=r"adam: betas is \(0.9, 1.5\), expected two numbers"):
        OptimizerOptions.of({"name": "adam", "betas": [0.9, 1.5]})


# -- the learning rate over a run, and the length of gradients ------------------------------------


def factors(steps=11, **options):
    made = OptimizerOptions.of(options)
    return [made.factor(step, steps - 1, 0) for step in range(steps)]


def test_courses_of_the_learning_rate():
    assert factors() == [1.0] * 11
    cosine = factors(schedule="cosine")
    assert (cosine[0], cosine[5], cosine[10]) == pytest.approx((1.0, 0.5, 0.0))
    stair = factors(schedule="step", stair=4, cut=0.5)
    assert stair == [1.0] * 4 + [0.5] * 4 + [0.25] * 3
    cycle = factors(schedule="one-cycle", rise=0.3)
    assert (cycle[0], cycle[3], cycle[10]) == pytest.approx((0.04, 1.0, 0.0))
    assert cycle == sorted(cycle[:4]) + sorted(cycle[4:], reverse=True)
    warm = factors(lr_warmup=4)
    assert warm == pytest.approx([0.2, 0.4, 0.6, 0.8] + [1.0] * 7)
    plateau = OptimizerOptions.of({"schedule": "plateau", "cut": 0.1})
    assert [plateau.factor(9, 10, cuts) for cuts in range(3)] == pytest.approx([1.0, 0.1, 0.01])


def rates(monkeypatch, steps=12, **options):
    """The learning rates that a run sets, step by step."""
    seen, made = [], []

    class Noting(Sink):
        def emit(self, event):
            if isinstance(event, StepEvent):
                seen.append(made[0].param_groups[0]["lr"])

    make = OPTIMIZERS["adam"].make
    monkeypatch.setattr(OPTIMIZERS["adam"], "make", lambda *a: made.append(make(*a)) or made[0])
    given = {"batch_size": 8, "threads": 0, "estimator": "sgcn", "average": 0.0} | options
    fit(small_model(), labelled(), steps=steps, sinks=[Noting()], optimizer="adam", **given)
    return seen


def test_a_run_follows_the_course(monkeypatch):
    assert rates(monkeypatch, lr=0.5, schedule="cosine") == pytest.approx(
        [0.5 * (0.5 + 0.5 * np.cos(np.pi * t / 12)) for t in range(12)]
    )


def test_a_plateau_cuts_when_scores_get_no_better(monkeypatch):
    options = {"schedule": "plateau", "wait": 4, "cut": 0.5, "evaluate_every": 2, "patience": None}
    seen = rates(monkeypatch, 14, lr=1e-9, **options)
    # The first score, after two steps, stays the best: cuts after steps 6 and 10.
    assert seen == pytest.approx([1e-9] * 6 + [5e-10] * 4 + [2.5e-10] * 4)


def test_gradients_are_cut_to_a_length():
    """A step of sgd is as long as clip says."""
    moved = []

    def look(engine, loader, step):
        moved.append(torch.cat([p.detach().flatten().clone() for p in engine.weights.values()]))

    for clip in (1e-3, None):
        fit(small_model(), labelled(), optimizer="sgd", lr=1.0, clip=clip, steps=3, batch_size=8,
            estimator="sgcn++", threads=0, callbacks=[look])  # fmt: skip
    cut, free = moved[:3], moved[3:]
    assert float((cut[1] - cut[0]).norm()) == pytest.approx(1e-3, rel=1e-3)
    assert float((cut[2] - cut[1]).norm()) == pytest.approx(1e-3, rel=1e-3)
    assert float((free[1] - free[0]).norm()) > 2e-3
    uncut = {"w": torch.tensor([3.0, 4.0])}
    assert clipped(uncut, 5.0) is uncut
    assert clipped(uncut, 1.0)["w"].tolist() == pytest.approx([0.6, 0.8])

"""How training goes: losses against steps and seconds, and the error of the gradient."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sgcn.experiments.core import PROBE, TRAIN, Case, Experiment, Plan, Run
from sgcn.experiments.data import PAPER_DATA, Dataset
from sgcn.experiments.figures import SAMPLERS, curves, graph_and_sampler, grid, legend, plot, unique
from sgcn.experiments.settings import ROWS, case

_RELATIVE = (
    "relative to the exact one, |g - G|² / |G|², and a number for a run is the geometric mean over "
    "its steps; the paper's is absolute."
)

# -- the opening figure -----------------------------------------------------------------------


def _ladies(plan: Plan, data: Dataset) -> list[Case]:
    return [case(plan, data, "ladies", row, kinds=(TRAIN, PROBE)) for row in ROWS["ladies"]]


DECOMPOSITION = Experiment(
    title="Doubly variance reduction, LADIES",
    data=("flickr",),
    cases=_ladies,
    numbers=("final_training_loss", "lowest_validation_loss", "gradient_mse"),
    draw=partial(curves, quantities=("training_loss", "validation_loss", "gradient_mse")),
    curves=("training_loss", "validation_loss", "gradient_mse"),
    note=f"The error of the gradient is {_RELATIVE}",
)

# -- validation loss, every sampler on every graph --------------------------------------------


def _first_and_last(plan: Plan, data: Dataset) -> list[Case]:
    """The first and the last row of each sampler: for VRGCN, SGCN+ is the plain one."""
    return [
        case(plan, data, sampler, estimator)
        for sampler in plan.samplers
        if sampler != "full"
        for estimator in (ROWS[sampler][0], ROWS[sampler][-1])
    ]


def _draw_convergence(runs: Sequence[Run]) -> Any:
    samplers = unique(run.case.sampler for run in runs)
    figure, lines = grid(runs, len(samplers), width=2.6, height=2.3)
    for axes, here in lines:
        for axis, sampler in zip(axes, samplers, strict=True):
            plot(axis, [run for run in here if run.case.sampler == sampler], "validation_loss")
            axis.set_title(SAMPLERS[sampler], loc="left")
            axis.set_xlabel("step")
        axes[0].set_ylabel(f"{here[0].case.data.label}\nvalidation loss")
    legend(figure, runs)
    return figure


CONVERGENCE = Experiment(
    title="Validation loss of SGCN and SGCN++",
    data=PAPER_DATA,
    cases=_first_and_last,
    numbers=("lowest_validation_loss", "best_validation_f1"),
    draw=_draw_convergence,
    curves=("validation_loss",),
)

# -- the error of the gradient ----------------------------------------------------------------


def _first_steps(plan: Plan, data: Dataset) -> list[Case]:
    """The paper shows 200 steps."""
    samplers = ("neighbor",) if plan.quick else ("neighbor", "fastgcn", "ladies", "saint")
    return [
        case(plan, data, sampler, estimator, kinds=(TRAIN, PROBE), epochs=min(plan.epochs, 20))
        for sampler in samplers
        for estimator in ROWS[sampler]
    ]


GRADIENT_MSE = Experiment(
    title="Error of the stochastic gradient in the first steps",
    data=("reddit",),
    cases=_first_steps,
    numbers=("gradient_mse", "final_training_loss"),
    draw=partial(curves, quantities=("gradient_mse", "training_loss"), row=graph_and_sampler),
    curves=("gradient_mse", "training_loss"),
    note=f"The error is {_RELATIVE}",
)

# -- against seconds --------------------------------------------------------------------------


def _sampled(plan: Plan, data: Dataset) -> list[Case]:
    return [
        case(plan, data, sampler, estimator)
        for sampler in plan.samplers
        if sampler != "full"
        for estimator in ROWS[sampler]
    ]


WALL_CLOCK = Experiment(
    title="Losses against seconds of training",
    data=("reddit", "ppi-large"),
    cases=_sampled,
    numbers=("training_seconds", "final_training_loss", "lowest_validation_loss"),
    draw=partial(
        curves,
        quantities=("training_loss", "validation_loss"),
        x="seconds",
        row=graph_and_sampler,
    ),
    curves=("training_loss", "validation_loss"),
    note="Seconds are those of sampling, reading rows and computing, snapshots included; "
    "evaluations between snapshots are left out. Several --jobs compete for the machine's memory: "
    "take one for seconds that count.",
)

"""`fit`: the training loop. Start reading here.

seeds -> sampler -> batch -> rows read -> passes: forward rule, gradient rule -> gradient
    -> clip -> learning rate, optimiser -> history write -> events -> sinks
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from time import perf_counter
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch
from torch import Tensor

from sgcn.compute.exact import predict
from sgcn.compute.gradients import Gradient
from sgcn.errors import SgcnError, TrainingDiverged, TrainingInterrupted, no_graph
from sgcn.estimators import state as engine_state
from sgcn.estimators.engine import Engine, Outcome, worth_preaggregating
from sgcn.estimators.gradient.base import square
from sgcn.graph import Graph
from sgcn.kernels.threads import set_kernel_threads
from sgcn.nn import Model
from sgcn.options import Options
from sgcn.rng import Key, check_seed
from sgcn.rows import store_of
from sgcn.samplers import NodeSet
from sgcn.sources import Loader, PoolSource, Source
from sgcn.task import split_nodes, train_nodes
from sgcn.training.averaging import WeightAverage
from sgcn.training.checkpoints import load_state, pack_optimizer, save_state, unpack_optimizer
from sgcn.training.checks import check_features, check_model, rehearse
from sgcn.training.events import EpochEvent, Event, ScoreEvent, StepEvent
from sgcn.training.history import History
from sgcn.training.options import OptimizerOptions, Training, keywords_of_fit
from sgcn.training.prefetch import Prefetcher
from sgcn.training.sinks import Memory, Progress, Sink, load_states, states
from sgcn.training.stopping import StopRequest

#: Called before every step with the engine, the loader and the number of the step; may only look.
#: An event that it returns goes to the sinks.
Callback = Callable[[Engine, Loader, int], Event | None]
P = ParamSpec("P")
#: A loss that ends so many times the first one, or ones, above it is not learning.
_DIVERGED = 10.0
T = TypeVar("T")


@dataclass
class Fitted:
    """What training leaves: scores of the best weights (``model`` holds them), and the costs."""

    test: dict[str, float] = field(default_factory=dict)
    validation: dict[str, float] = field(default_factory=dict)
    best_step: int = -1
    steps: int = 0
    snapshots: int = 0
    restarts: int = 0
    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(
            ("total", "sampling", "transfer", "compute", "snapshot", "evaluation"), 0.0
        )
    )

    def __post_init__(self) -> None:
        # No field: a `Memory` among the sinks has them, and puts them into checkpoints.
        self.events: Sequence[Event] | None = None

    @property
    def history(self) -> History:
        """All steps, scores and epochs."""
        if self.events is None:
            raise SgcnError(
                "this training kept no events, expected a Memory among its sinks (as without any)"
            )
        return History(self.events)


def _with_keywords(function: Callable[P, T]) -> Callable[P, T]:
    """In place of ``**options``, `help` and editors see every option that the fields declare."""
    plain = signature(function)
    kept = [p for p in plain.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default)
        for name, default in keywords_of_fit().items()
    ]
    vars(function)["__signature__"] = plain.replace(parameters=[*kept, *options])
    return function


@_with_keywords
def fit(
    model: Model,
    graph: Graph,
    *,
    training: Training | None = None,
    sinks: Sequence[Sink] = (),
    callbacks: Sequence[Callback] = (),
    state: Path | str | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Fitted:
    """Train ``model`` on ``graph``, keep the weights that validate best, and score them.

    ``options`` are ``sampler``, ``estimator`` and ``optimizer``, by name or as objects (an
    optimiser also as one of torch, or as a function of the parameters), and the keys of [task],
    [optimizer] and [training], which docs/training.md lists; they change what ``training`` says.
    ``loss`` and ``metrics`` may be functions. With ``state`` a folder, training can be killed at
    any moment: the same call goes on bit by bit. ``progress`` is shown by default where somebody
    watches.
    """
    if not isinstance(graph, Graph):
        raise no_graph(graph)
    given = options.pop("optimizer") if _is_optimizer(options.get("optimizer")) else None
    training = (training or Training()).changed(**options)
    training = _checked(training, model, graph, callbacks)
    optimizer = _optimizer(given, training.optimizer, model)
    sinks = _listening(sinks, progress)
    with ExitStack() as stack:
        for sink in sinks:
            stack.callback(sink.close)
        state = None if state is None else Path(state)
        run = _Run(model, graph, training, optimizer, sinks, state)
        run.sets_rate = given is None
        stack.callback(run.close)
        run.resume()
        for sink in sinks:
            sink.start(run.budget, run.steps_per_epoch)
        stop = stack.enter_context(StopRequest())
        try:
            while run.result.steps < run.budget and not run.out_of_patience():
                if stop.signal is not None:
                    run.interrupt(stop.signal)
                run.maybe_checkpoint()
                run.look(callbacks)
                outcome, restarted, sampling, began = run.take()  # seeds .. gradient
                run.consider(outcome.scored)
                run.apply(outcome)  # clip, learning rate, optimiser, history write
                run.report_step(outcome, restarted, sampling, began)
                if run.needs_score():
                    run.evaluate()
                run.end_epoch_if_due()
            run.check_loss()
            return run.finish()
        except TrainingDiverged as error:
            error.fitted = run.finish() if run.best else None
            raise


def _checked(
    training: Training, model: Model, graph: Graph, callbacks: Sequence[Callback]
) -> Training:
    """``training`` with nothing left open, once it is sure that it can be run."""
    loop = training.loop
    check_model(model)
    check_features(graph)
    if loop.probe_every is not None and not callbacks:
        raise SgcnError(
            f"probe_every is {loop.probe_every}, expected a probe for it: "
            f"callbacks=[GradientProbe(every={loop.probe_every})]"
        )
    if loop.preaggregate is None:
        pays = worth_preaggregating(model, graph, training.sampler)
        training = training.changed(preaggregate=pays)
    rehearse(training, graph, model)
    return training


def _listening(sinks: Sequence[Sink], progress: bool | None) -> list[Sink]:
    """``sinks``, or one for `Fitted.history`; and progress where it is asked for or watched."""
    given = list(sinks) or [Memory()]
    wanted = someone_watches() if progress is None else progress
    return given + [Progress()] * (wanted and not any(isinstance(s, Progress) for s in given))


def _is_optimizer(given: Any) -> bool:
    """Whether it is an optimiser of torch or makes one, and not options of one."""
    return isinstance(given, torch.optim.Optimizer) or (
        callable(given) and not isinstance(given, (str, Options))
    )


def _optimizer(given: Any, options: OptimizerOptions, model: Model) -> torch.optim.Optimizer:
    """What moves the parameters of ``model``: the one that was given, or one by ``options``."""
    usual = OptimizerOptions(clip=options.clip).values()
    for key, value in options.values().items():
        if given is not None and value != usual.get(key):
            raise SgcnError(
                f"{key} is {value!r} beside an optimiser that is made, expected one of the two: "
                "set it where the optimiser is made"
            )
    parameters = list(model.parameters())
    if given is None:
        return options.make(parameters)
    made = given if isinstance(given, torch.optim.Optimizer) else given(parameters)
    if not isinstance(made, torch.optim.Optimizer):
        raise SgcnError(f"the function for an optimiser gave {made!r}, expected one of torch.optim")
    if isinstance(made, torch.optim.LBFGS):
        raise SgcnError("LBFGS runs the model many times a step, expected a first-order optimiser")
    moved = {id(p) for group in made.param_groups for p in group["params"]}
    if moved != {id(p) for p in parameters}:
        raise SgcnError(
            "the optimiser was made for other parameters than the model's, expected "
            "model.parameters() of the model that is trained"
        )
    return made


def someone_watches() -> bool:
    """Whether standard error is a terminal, or this is a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def clipped(gradient: Gradient, most: float) -> Gradient:
    """``gradient``, its length cut to ``most`` over all parameters."""
    length = square(gradient) ** 0.5
    return gradient if length <= most else {k: g * (most / length) for k, g in gradient.items()}


class _Run:
    """The state of one `fit`; each method is one line of its loop."""

    def __init__(
        self,
        model: Model,
        graph: Graph,
        training: Training,
        optimizer: torch.optim.Optimizer,
        sinks: Sequence[Sink],
        state: Path | None,
    ) -> None:
        self.model, self.graph, self.optimizer = model, graph, optimizer
        self.options, self.sinks, self.state = training.loop, sinks, state
        self._cuts_after = training.optimizer.schedule.cuts_after
        self.seed, self.batch_size = check_seed(self.options.seed), self.options.batch_size
        self.task = training.task.on(graph)
        model.scale_outputs(self.task.scale)
        self.validation = torch.from_numpy(split_nodes(graph, 1))
        self.test = torch.from_numpy(split_nodes(graph, 2))
        set_kernel_threads(torch.get_num_threads())
        decay = self.options.average
        self.average = WeightAverage(model, decay) if decay > 0 else None
        self.engine, self.loader = self._engine_and_loader(training)
        self.steps_per_epoch = len(self.loader)
        self.budget = self.options.budget(self.steps_per_epoch)
        self.evaluate_every = self.options.evaluate_every or self._score_interval()
        self.rates = [group["lr"] for group in optimizer.param_groups]
        self.optimizer_options, self.sets_rate = training.optimizer, True
        threads = self.options.threads
        self.prefetcher, self.ahead = Prefetcher(threads), 2 * threads
        self.pool_source: Source | None = None
        self.pool_snapshot = -1  # the snapshot that drew its nodes
        self.last_checkpoint = perf_counter()
        self.result = Fitted()
        self.best: dict[str, Tensor] = {}
        self.losses: list[float] = []
        self.first_loss = self.last_loss = float("nan")  # the last ones in the mean
        self.last_score: dict[str, float] | None = None
        self.scored_step = 0  # steps before the last score
        self.cuts, self.cut_step = 0, 0  # of the learning rate, for want of a better score
        self.saved_steps = 0  # steps that the last checkpoint has
        self.features = store_of(graph.x)
        self.started = perf_counter()

    def _engine_and_loader(self, training: Training) -> tuple[Engine, Loader]:
        """What computes the steps and what names their seeds, on the graph that is trained on."""
        options, graph, task = self.options, self.graph, self.task
        train, scored = train_nodes(graph), None if self.average else split_nodes(graph, 1)
        if options.inductive:
            seen = np.asarray(graph.split) == 0
            graph = graph.subgraph(seen)
            task = dataclasses.replace(task, labels=task.labels[torch.from_numpy(seen)])
            train, scored = split_nodes(graph, 0), None
        loader = Loader(
            graph, train, training.sampler,
            batch_size=options.batch_size, depth=self.model.depth, seed=self.seed,
            batches_per_epoch=options.batches_per_epoch,
        )  # fmt: skip
        engine = Engine(
            training.estimator, self.model, graph, task, train, training.sampler,
            seed=self.seed, preaggregate=bool(options.preaggregate), scratch=self.state,
            scored=scored, steps=options.budget(len(loader)),
            batches=len(graph) / options.batch_size,
        )  # fmt: skip
        return engine, loader

    @property
    def epoch(self) -> int:
        return self.result.steps // self.steps_per_epoch

    @property
    def step(self) -> int:
        """Within the epoch."""
        return self.result.steps % self.steps_per_epoch

    # -- one step -------------------------------------------------------------------------------

    def look(self, callbacks: Sequence[Callback]) -> None:
        """Let callbacks see the state before the next step."""
        for callback in callbacks:
            event = callback(self.engine, self.loader, self.result.steps)
            if event is not None:
                self._emit(event)

    def take(self) -> tuple[Outcome, bool, float, float]:
        """The next step's outcome: a regular one, or a snapshot where one is due or called for."""
        began = perf_counter()
        outcome, sampling = None, 0.0
        regular = not self.engine.due()
        if regular:
            batch = self.prefetcher.take(self._jobs())
            sampling = perf_counter() - began
            outcome = self.engine.regular(batch, self._key(self.epoch, self.step))
        restarted = self.engine.restart_due or (regular and outcome is None)
        if outcome is None:
            outcome = self.engine.snapshot()
        return outcome, restarted, sampling, began

    def apply(self, outcome: Outcome) -> None:
        options = self.optimizer_options
        if options.clip is not None:
            outcome.gradient = clipped(outcome.gradient, options.clip)
        if self.sets_rate:
            factor = options.factor(self.result.steps, self.budget, self.cuts)
            for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
                group["lr"] = rate * factor
        self.engine.apply(outcome, self.optimizer)
        if self.average is not None:
            self.average.update()

    def _key(self, epoch: int, step: int) -> Key:
        return Key(self.seed, epoch, step)

    def _jobs(self) -> list[tuple[Any, Callable[[], Any]]]:
        """This step's sampling and that of the next regular ones, by name."""
        jobs: list[tuple[Any, Callable[[], Any]]] = []
        engine, state = self.engine, self.engine.sampler_state
        # What a sampler learns from this step may change how the next batch is drawn.
        for ahead in range(self.ahead + 1 if state is None else 1):
            epoch, step = divmod(self.epoch * self.steps_per_epoch + self.step + ahead,
                                 self.steps_per_epoch)  # fmt: skip
            if ahead and engine.due(ahead):
                if engine.pool is not None:
                    break  # the next large batch is not drawn yet
                continue
            pooled = None if engine.pool is None else engine.progress.snapshots
            name = (epoch, step, pooled, None if state is None else state.version)
            seeds = self._seeds(epoch, step, ahead)
            jobs.append((name, partial(engine.draw, seeds, self._key(epoch, step))))
        return jobs

    def _seeds(self, epoch: int, step: int, ahead: int) -> NodeSet:
        """The seeds of a step: among the nodes of a large-batch snapshot, if there is one."""
        engine = self.engine
        if engine.pool is None:
            return self.loader.seeds(epoch, step)
        assert engine.progress.since_snapshot is not None
        if self.pool_source is None or self.pool_snapshot != engine.progress.snapshots:
            self.pool_snapshot = engine.progress.snapshots
            self.pool_source = PoolSource(
                engine.pool, len(engine.graph), engine.sampler, self.batch_size
            )
        return self.pool_source.seeds(0, engine.progress.since_snapshot - 1 + ahead)

    def report_step(self, outcome: Outcome, restarted: bool, sampling: float, began: float) -> None:
        spent = perf_counter() - began
        compute = spent - sampling - outcome.transfer
        seconds = self.result.seconds
        seconds["sampling"] += sampling
        seconds["transfer"] += outcome.transfer
        seconds["snapshot" if outcome.snapshot else "compute"] += compute
        self.result.steps += 1
        self.result.snapshots += outcome.snapshot
        self.result.restarts += restarted
        self.losses.append(outcome.loss)
        if self.result.steps == 1:
            self.first_loss = self.last_loss = outcome.loss
        self.last_loss += 0.1 * (outcome.loss - self.last_loss)
        event = StepEvent(
            epoch=(self.result.steps - 1) // self.steps_per_epoch, step=self.result.steps - 1,
            loss=outcome.loss, gradient_norm=square(outcome.gradient) ** 0.5,
            norm_growth=outcome.norm_growth, snapshot=outcome.snapshot, restart=restarted,
            seconds=perf_counter() - self.started, sampling=sampling, transfer=outcome.transfer,
            compute=compute,
        )  # fmt: skip
        self._emit(event)

    def _emit(self, event: Event) -> None:
        for sink in self.sinks:
            sink.emit(event)

    # -- scores ---------------------------------------------------------------------------------

    def consider(self, logits: Tensor | None) -> None:
        """Score the validation nodes from a snapshot's forward pass, which has them anyway."""
        if logits is not None:
            self._score(logits)

    def evaluate(self) -> None:
        """Score the current weights, or their average, with a pass of their own."""
        before = self.result.seconds["evaluation"]
        with nullcontext() if self.average is None else self.average.swapped():
            logits = self._logits().index_select(0, self.validation)
            self._score(logits, self.result.seconds["evaluation"] - before)

    def _logits(self) -> Tensor:
        began = perf_counter()
        chunk = self.engine.operands.chunk
        logits = predict(self.model, self.graph, self.features, chunk=chunk)
        self.result.seconds["evaluation"] += perf_counter() - began
        if not bool(torch.isfinite(logits).all()):
            raise TrainingDiverged(
                "the model's outputs are not finite numbers: training blew up, lower the learning "
                "rate (lr)"
            )
        return logits

    def _score_interval(self) -> int:
        """Steps between scores: a score costs as much as batches of all nodes, at the most."""
        return max(10, len(self.graph) // self.batch_size)

    def needs_score(self) -> bool:
        """Whether it is time for a score: after the last step too."""
        waited = self.result.steps - self.scored_step
        return waited >= self.evaluate_every or (waited > 0 and self.result.steps == self.budget)

    def _score(self, logits: Tensor, evaluation: float = 0.0) -> None:
        score = self.task.score(logits, self.validation)
        steps = self.result.steps
        # Without validation nodes scores are NaN and the last weights are as good as any.
        better = not self.result.validation or self.task.improves(score, self.result.validation)
        if better:
            self.result.validation, self.result.best_step = score, steps
            self.best = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
        elif steps - max(self.result.best_step, self.cut_step) >= self._cuts_after:
            self.cuts, self.cut_step = self.cuts + 1, steps
        self.last_score, self.scored_step = score, steps
        now = perf_counter() - self.started
        self._emit(ScoreEvent(self._last_epoch, steps, score, better, now, evaluation))

    @property
    def _last_epoch(self) -> int:
        """The epoch of the last step."""
        return max(self.result.steps - 1, 0) // self.steps_per_epoch

    def end_epoch_if_due(self) -> None:
        if self.step > 0 and self.result.steps < self.budget:
            return
        loss = float(np.mean(self.losses))
        now = perf_counter() - self.started
        self._emit(EpochEvent(self._last_epoch, self.result.steps, loss, self.last_score, now))
        self.losses = []

    def out_of_patience(self) -> bool:
        """Whether the last score came ``patience`` steps or more after the best one."""
        patience = self.options.patience
        waited = self.scored_step - self.result.best_step
        return patience is not None and self.result.best_step >= 0 and waited >= patience

    def check_loss(self) -> None:
        """A run that ends far above where it began has not learned."""
        if self.last_loss > self.first_loss + _DIVERGED * max(abs(self.first_loss), 1.0):
            raise TrainingDiverged(
                f"training diverged: the loss went from {self.first_loss:.3g} to "
                f"{self.last_loss:.3g}; lower the learning rate (lr); the best weights are kept"
            )

    def finish(self) -> Fitted:
        """Load the best weights, score the test nodes, and add up."""
        if self.best:
            self.model.load_state_dict(self.best)
        logits = self._logits()
        self.result.validation = self.task.score(
            logits.index_select(0, self.validation), self.validation
        )
        self.result.test = self.task.score(logits.index_select(0, self.test), self.test)
        self.result.seconds["total"] = perf_counter() - self.started
        kept = (sink.events for sink in self.sinks if isinstance(sink, Memory))
        self.result.events = next(kept, None)
        return self.result

    # -- checkpoints ----------------------------------------------------------------------------

    def maybe_checkpoint(self) -> None:
        """Save, if the last time is long enough ago: before a snapshot, where no history is alive.

        If there is no further one, histories are saved too.
        """
        engine = self.engine
        clean = engine.due() or engine.progress.since_snapshot is None
        clean = clean or engine.estimator.schedule.gap is None
        waited = perf_counter() - self.last_checkpoint >= self.options.checkpoint_seconds
        if clean and waited:
            self.checkpoint()

    def interrupt(self, signal: int) -> None:
        """Save where it stands, load the best weights, and say so."""
        self.checkpoint()
        steps, saved = self.result.steps, "nothing is saved without state="
        if self.state is not None:
            saved = f"its state is in {self.state}, and the same call goes on from there"
        raise TrainingInterrupted(
            f"training was stopped after step {steps} of {self.budget}; {saved}", signal,
            self.finish(),
        )  # fmt: skip

    def checkpoint(self) -> None:
        """Save all that the next step depends on."""
        engine = self.engine
        if self.state is None or self.result.steps == self.saved_steps:
            return
        self.result.seconds["total"] = perf_counter() - self.started
        tensors, optimizer = pack_optimizer(self.optimizer)
        kept, progress = engine_state.save(engine)
        tensors |= kept
        tensors |= {f"model.{k}": v for k, v in self.model.state_dict().items()}
        tensors |= {f"best.{k}": v for k, v in self.best.items()}
        if self.average is not None:
            tensors |= {f"average.{k}": v for k, v in self.average.weights.items()}
        facts = {
            "optimizer": optimizer, "engine": progress,
            "losses": self.losses, "first_loss": self.first_loss, "last_loss": self.last_loss,
            "last_score": self.last_score, "scored_step": self.scored_step,
            "cuts": [self.cuts, self.cut_step],
            "result": dataclasses.asdict(self.result),
            "sinks": states(self.sinks),
        }  # fmt: skip
        save_state(self.state, self.result.steps, tensors, facts)
        self.saved_steps, self.last_checkpoint = self.result.steps, perf_counter()

    def resume(self) -> None:
        """Go on from the checkpoint in ``state``, if there is one."""
        saved = None if self.state is None else load_state(self.state)
        if saved is None:
            return
        tensors, facts = saved
        try:
            weights = {k[6:]: v for k, v in tensors.items() if k.startswith("model.")}
            self.model.load_state_dict(weights)
            unpack_optimizer(self.optimizer, tensors, facts["optimizer"])
            if self.average is not None:
                self.average.load(tensors, facts["result"]["steps"])
            engine_state.load(self.engine, tensors, facts["engine"])
        except (RuntimeError, ValueError, KeyError) as error:
            raise SgcnError(
                f"{self.state} does not fit this model, expected its own checkpoint: start again "
                f"with another output directory ({str(error).splitlines()[0]})"
            ) from None
        self.best = {k[5:]: v for k, v in tensors.items() if k.startswith("best.")}
        self.losses, self.last_loss = facts["losses"], facts["last_loss"]
        self.first_loss, (self.cuts, self.cut_step) = facts["first_loss"], facts["cuts"]
        self.last_score, self.scored_step = facts["last_score"], facts["scored_step"]
        self.result = Fitted(**facts["result"])
        load_states(self.sinks, facts["sinks"])
        self.saved_steps = self.result.steps
        self.started = perf_counter() - self.result.seconds["total"]

    def close(self) -> None:
        self.prefetcher.close()

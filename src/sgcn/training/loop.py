"""`fit`: the training loop. Start reading here.

seeds -> sampler -> batch -> rows read -> passes: forward rule, gradient rule -> gradient
    -> optimiser -> history write -> events -> sinks
"""

from __future__ import annotations

import dataclasses
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
from sgcn.errors import SgcnError, TrainingDiverged
from sgcn.estimators import state as engine_state
from sgcn.estimators.engine import Engine, Outcome, can_preaggregate
from sgcn.graph import Graph
from sgcn.kernels.threads import set_kernel_threads
from sgcn.nn import Model
from sgcn.rng import Key, check_seed
from sgcn.rows import store_of
from sgcn.samplers import NodeSet
from sgcn.sources import Loader, PoolSource, Source
from sgcn.task import split_nodes, train_nodes
from sgcn.training.averaging import WeightAverage
from sgcn.training.checkpoints import load_state, pack_optimizer, save_state, unpack_optimizer
from sgcn.training.checks import rehearse
from sgcn.training.events import EpochEvent, Event, ScoreEvent, StepEvent
from sgcn.training.optimizers import make_optimizer
from sgcn.training.options import OptimizerOptions, Training, keywords_of_fit
from sgcn.training.prefetch import Prefetcher
from sgcn.training.sinks import Sink, load_states, states

#: Called before every step with the engine, the loader and the number of the step; may only look.
#: An event that it returns goes to the sinks.
Callback = Callable[[Engine, Loader, int], Event | None]
P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class Fitted:
    """What training leaves: scores of the best weights (``model`` holds them), and the costs."""

    test: dict[str, float] = field(default_factory=dict)
    validation: dict[str, float] = field(default_factory=dict)
    best_epoch: int = -1
    steps: int = 0
    snapshots: int = 0
    restarts: int = 0
    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(
            ("total", "sampling", "transfer", "compute", "snapshot", "evaluation"), 0.0
        )
    )


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
    state: Path | None = None,
    **options: Any,
) -> Fitted:
    """Train ``model`` on ``graph``, keep the weights that validate best, and score them.

    ``options`` are ``sampler``, ``estimator`` and ``optimizer``, by name or as objects (an
    optimiser also as a function of the parameters), and the keys of [task], [optimizer] and
    [training], which docs/training.md lists; they change what ``training`` says. ``loss`` and
    ``metrics`` may be functions. With ``state`` a folder,
    training can be killed at any moment: the same call goes on bit by bit.
    """
    factory = options.pop("optimizer") if callable(options.get("optimizer")) else None
    ignored = [name for name in OptimizerOptions.of({}).values() if factory and name in options]
    if ignored:
        raise SgcnError(
            f"{ignored[0]} is given beside an optimiser that is a function, expected one of the "
            "two: set it in the function"
        )
    training = (training or Training()).changed(**options)
    loop = training.loop
    if loop.probe_every is not None and not callbacks:
        raise SgcnError(
            f"probe_every is {loop.probe_every}, expected a probe for it: "
            f"callbacks=[GradientProbe(every={loop.probe_every})]"
        )
    if loop.preaggregate is None:
        early = can_preaggregate(model, graph, training.sampler)
        training = training.changed(preaggregate=early)
    rehearse(training, graph, model)
    parameters = model.parameters()
    optimizer = factory(parameters) if factory else make_optimizer(training.optimizer, parameters)
    with ExitStack() as stack:
        for sink in sinks:
            stack.callback(sink.close)
        run = _Run(model, graph, training, optimizer, sinks, state)
        stack.callback(run.close)
        run.resume()
        for sink in sinks:
            sink.start(loop.epochs, run.steps_per_epoch)
        while run.epoch < loop.epochs and not run.out_of_patience():
            while run.step < run.steps_per_epoch:
                run.maybe_checkpoint()
                run.look(callbacks)
                outcome, restarted, sampling, began = run.take()  # seeds .. gradient
                run.consider(outcome.scored)
                run.apply(outcome)  # optimiser, history write
                run.report_step(outcome, restarted, sampling, began)
            if run.needs_score():
                run.evaluate()
            run.end_epoch()
        return run.finish()


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
        threads = self.options.threads
        self.prefetcher, self.ahead = Prefetcher(threads), 2 * threads
        self.pool_source: Source | None = None
        self.pool_snapshot = -1  # the snapshot that drew its nodes
        self.last_checkpoint = perf_counter()
        self.epoch = self.step = 0
        self.result = Fitted()
        self.best: dict[str, Tensor] = {}
        self.losses: list[float] = []
        self.last_score: dict[str, float] | None = None
        self.scored_epoch = -1
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
        engine = Engine(
            training.estimator, self.model, graph, task, train, training.sampler,
            seed=self.seed, preaggregate=bool(options.preaggregate), scratch=self.state,
            scored=scored,
        )  # fmt: skip
        loader = Loader(
            graph, train, training.sampler,
            batch_size=options.batch_size, depth=self.model.depth, seed=self.seed,
            batches_per_epoch=options.batches_per_epoch,
        )  # fmt: skip
        return engine, loader

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
        norm = float(sum(float(g.square().sum()) for g in outcome.gradient.values())) ** 0.5
        self.step += 1
        event = StepEvent(
            epoch=self.epoch, step=self.result.steps - 1, loss=outcome.loss, gradient_norm=norm,
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

    def needs_score(self) -> bool:
        """Whether this epoch must end with a score: the last one, or too many went without."""
        unscored = self.epoch - self.scored_epoch
        return self.epoch + 1 == self.options.epochs or unscored >= self.options.evaluate_every

    def _score(self, logits: Tensor, evaluation: float = 0.0) -> None:
        score = self.task.score(logits, self.validation)
        # Without validation nodes scores are NaN and the last weights are as good as any.
        better = not self.result.validation or self.task.improves(score, self.result.validation)
        if better:
            self.result.validation, self.result.best_epoch = score, self.epoch
            self.best = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
        self.last_score, self.scored_epoch = score, self.epoch
        now = perf_counter() - self.started
        self._emit(ScoreEvent(self.epoch, self.result.steps, score, better, now, evaluation))

    def end_epoch(self) -> None:
        loss = float(np.mean(self.losses)) if self.losses else float("nan")
        now = perf_counter() - self.started
        self._emit(EpochEvent(self.epoch, self.result.steps, loss, self.last_score, now))
        self.losses = []
        self.epoch, self.step = self.epoch + 1, 0

    def out_of_patience(self) -> bool:
        """Whether the last score came ``patience`` epochs or more after the best one."""
        patience = self.options.patience
        waited = self.scored_epoch - self.result.best_epoch
        return patience is not None and self.result.best_epoch >= 0 and waited >= patience

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
        if self.state is None or not clean or not waited or self.result.steps == self.saved_steps:
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
            "optimizer": optimizer, "epoch": self.epoch, "step": self.step,
            "engine": progress, "losses": self.losses,
            "last_score": self.last_score, "scored_epoch": self.scored_epoch,
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
        self.epoch, self.step = facts["epoch"], facts["step"]
        self.losses = facts["losses"]
        self.last_score, self.scored_epoch = facts["last_score"], facts["scored_epoch"]
        self.result = Fitted(**facts["result"])
        load_states(self.sinks, facts["sinks"])
        self.saved_steps = self.result.steps
        self.started = perf_counter() - self.result.seconds["total"]

    def close(self) -> None:
        self.prefetcher.close()

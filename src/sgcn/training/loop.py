"""`fit`: the training loop. Start reading here.

seeds -> sampler -> batch -> estimator -> gradient -> optimiser step -> history write -> events
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sgcn.compute.exact import predict
from sgcn.errors import SgcnError, TrainingDiverged
from sgcn.estimators import Estimator, make_estimator
from sgcn.estimators.engine import Engine, Outcome, can_preaggregate
from sgcn.graph import Graph
from sgcn.kernels.threads import set_kernel_threads
from sgcn.nn import Model
from sgcn.options import integer, nearest
from sgcn.rng import Key, check_seed
from sgcn.rows import Features
from sgcn.samplers import NodeSet, Sampler, make_sampler
from sgcn.sources import Loader, Prefetcher
from sgcn.task import Task, split_nodes, train_nodes
from sgcn.training.averaging import WeightAverage
from sgcn.training.checkpoints import load_state, pack_optimizer, save_state, unpack_optimizer
from sgcn.training.events import EpochEvent, Event, JsonLines, ScoreEvent, Sink, StepEvent
from sgcn.training.optimizers import light

Optimizer = str | Callable[[Iterable[Tensor]], torch.optim.Optimizer]
#: Called before every step with the engine, the loader and the number of the step; may only look.
Callback = Callable[[Engine, Loader, int], None]


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


def fit(
    model: Model,
    graph: Graph,
    *,
    sampler: str | Sampler = "neighbor",
    estimator: str | Estimator = "anchored++",
    optimizer: Optimizer = "adam",
    lr: float = 0.01,
    epochs: int = 10,
    batch_size: int = 512,
    batches_per_epoch: int | None = None,
    inductive: bool = False,
    preaggregate: bool | None = None,
    average: float = 0.98,
    evaluate_every: int = 1,
    best_by: str = "f1_micro",
    patience: int | None = None,
    seed: int = 0,
    threads: int = 1,
    sinks: Sequence[Sink] = (),
    callbacks: Sequence[Callback] = (),
    state: Path | None = None,
    checkpoint_seconds: float = 30.0,
) -> Fitted:
    """Train ``model`` on ``graph``, keep the weights that validate best, and score them.

    ``epochs`` passes over the training nodes (or ``batches_per_epoch`` batches each). With
    ``average`` above 0 it is a moving average of the weights that is scored and kept. P X is
    computed once with ``preaggregate``, by default if the first layer and memory allow it. With
    ``inductive`` the training graph is that of the training nodes alone. With ``state`` a folder
    there, training can be killed at any moment: the same call goes on bit by bit.
    """
    _check_counts(epochs=epochs, evaluate_every=evaluate_every, patience=patience)
    sampler = make_sampler(sampler) if isinstance(sampler, str) else sampler
    if preaggregate is None:
        preaggregate = can_preaggregate(model, graph, sampler)
    with ExitStack() as stack:
        for sink in sinks:
            stack.callback(sink.close)
        run = _Run(
            model, graph, sampler,
            make_estimator(estimator) if isinstance(estimator, str) else estimator,
            make_optimizer(optimizer, model, lr), batch_size, batches_per_epoch, inductive,
            preaggregate, average, best_by, check_seed(seed), threads, sinks, state,
            checkpoint_seconds,
        )  # fmt: skip
        stack.callback(run.close)
        run.resume()
        for sink in sinks:
            sink.start(epochs, run.steps_per_epoch)
        while run.epoch < epochs and not run.out_of_patience(patience):
            while run.step < run.steps_per_epoch:
                run.maybe_checkpoint()
                for callback in callbacks:
                    callback(run.engine, run.loader, run.result.steps)
                outcome, restarted, sampling, began = run.take()
                run.consider(outcome.scored)
                run.apply(outcome)
                run.tell_step(outcome, restarted, sampling, began)
            last = run.epoch + 1 == epochs
            if last or run.epochs_unscored >= evaluate_every:
                run.evaluate()
            run.end_epoch()
        return run.finish()


def _check_counts(**counts: int | None) -> None:
    for name, value in counts.items():
        if value is not None and not integer().test(value):
            raise SgcnError(f"{name} is {value!r}, expected {integer().words}")


class _Run:
    """The state of one `fit`; each method is one line of its loop."""

    def __init__(
        self, model: Model, graph: Graph, sampler: Sampler, estimator: Estimator,
        optimizer: torch.optim.Optimizer, batch_size: int, batches_per_epoch: int | None,
        inductive: bool, preaggregate: bool, average: float, best_by: str, seed: int,
        threads: int, sinks: Sequence[Sink], state: Path | None, checkpoint_seconds: float,
    ) -> None:  # fmt: skip
        if not 0.0 <= average < 1.0:
            raise SgcnError(f"average is {average}, expected a number from 0 to below 1")
        if best_by not in ("f1_micro", "loss"):
            raise SgcnError(f"best_by is {best_by!r}, expected one of f1_micro, loss")
        self.model, self.graph, self.optimizer = model, graph, optimizer
        self.task = Task.of(graph)
        train, validation, test = train_nodes(graph), split_nodes(graph, 1), split_nodes(graph, 2)
        self.validation, self.test = torch.from_numpy(validation), torch.from_numpy(test)
        home = graph
        task = self.task
        if inductive:
            seen = np.asarray(graph.split) == 0
            home = graph.subgraph(seen)
            task = dataclasses.replace(task, labels=task.labels[torch.from_numpy(seen)])
            train = split_nodes(home, 0)
        set_kernel_threads(torch.get_num_threads())
        self.average = WeightAverage(model, average) if average > 0 else None
        self.engine = Engine(
            estimator, model, home, task, train, sampler,
            seed=seed, preaggregate=preaggregate, scratch=state,
            scored=None if inductive or self.average else validation,
        )  # fmt: skip
        self.loader = Loader(
            home, train, sampler,
            batch_size=batch_size, depth=model.depth, seed=seed,
            batches_per_epoch=batches_per_epoch,
        )  # fmt: skip
        self.steps_per_epoch = len(self.loader)
        self.batch_size, self.seed, self.best_by = batch_size, seed, best_by
        self.prefetcher, self.ahead = Prefetcher(threads), 2 * threads
        self.sinks, self.state = sinks, state
        self.checkpoint_seconds, self.last_checkpoint = checkpoint_seconds, perf_counter()
        self.epoch = self.step = 0
        self.result = Fitted()
        self.best: dict[str, Tensor] = {}
        self.losses: list[float] = []
        self.last_score: dict[str, float] | None = None
        self.scored_epoch = -1
        self.saved_steps = 0  # steps that the last checkpoint knows of
        self.features = Features.of(graph.x)
        self.started = perf_counter()

    # -- one step -------------------------------------------------------------------------------

    def take(self) -> tuple[Outcome, bool, float, float]:
        """The next step's outcome: a regular one, or a snapshot where one is due or called for."""
        began = perf_counter()
        outcome, sampling = None, 0.0
        regular = not self.engine.due()
        if regular:
            batch = self.prefetcher.take(self._jobs())
            sampling = perf_counter() - began
            outcome = self.engine.regular(batch, self._key(self.epoch, self.step))
        restarted = self.engine.moved or (regular and outcome is None)
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
        for ahead in range(self.ahead + 1):
            epoch, step = divmod(self.epoch * self.steps_per_epoch + self.step + ahead,
                                 self.steps_per_epoch)  # fmt: skip
            if ahead and self.engine.due(ahead):
                if self.engine.pool is not None:
                    break  # the next large batch is not drawn yet
                continue
            seeds: NodeSet | Any = self._pool_seeds(ahead)
            if seeds is None:
                seeds = self.loader.seeds(epoch, step)
            name = (epoch, step, self.engine.snapshots if self.engine.pool is not None else 0)
            jobs.append((name, partial(self.engine.draw, seeds, self._key(epoch, step))))
        return jobs

    def _pool_seeds(self, ahead: int) -> NodeSet | Any:
        """Seeds among the nodes of a large-batch snapshot, which are in random order already."""
        pool = self.engine.pool
        if pool is None:
            return None
        if self.engine.sampler.draws_nodes:
            return NodeSet(pool, len(self.engine.graph))
        assert self.engine.since_snapshot is not None
        first = (self.engine.since_snapshot - 1 + ahead) * self.batch_size
        return pool[np.arange(first, first + min(self.batch_size, len(pool))) % len(pool)]

    def tell_step(self, outcome: Outcome, restarted: bool, sampling: float, began: float) -> None:
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
            self.epoch, self.result.steps - 1, outcome.loss, norm, outcome.drift,
            outcome.snapshot, restarted, perf_counter() - self.started, sampling,
            outcome.transfer, compute,
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
        logits = predict(self.model, self.graph, self.features)
        self.result.seconds["evaluation"] += perf_counter() - began
        if not bool(torch.isfinite(logits).all()):
            raise TrainingDiverged(
                "the model's outputs are not finite numbers: training blew up, lower the learning "
                "rate (lr)"
            )
        return logits

    @property
    def epochs_unscored(self) -> int:
        """Epochs since the last score, this one included; 0 if it has one."""
        return self.epoch - self.scored_epoch

    def _score(self, logits: Tensor, evaluation: float = 0.0) -> None:
        score = self.task.score(logits, self.validation)
        sign = 1.0 if self.best_by == "f1_micro" else -1.0
        known = self.result.validation
        # Without validation nodes scores are NaN and the last weights are as good as any.
        better = not known or not sign * score[self.best_by] <= sign * known[self.best_by]
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

    def out_of_patience(self, patience: int | None) -> bool:
        """Whether the last score came ``patience`` epochs or more after the best one."""
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
        """Save where no table is alive, if the last time is long enough ago."""
        clean = self.engine.due() or self.engine.since_snapshot is None
        waited = perf_counter() - self.last_checkpoint >= self.checkpoint_seconds
        if self.state is None or not clean or not waited or self.result.steps == self.saved_steps:
            return
        self.result.seconds["total"] = perf_counter() - self.started
        tensors, optimizer = pack_optimizer(self.optimizer)
        tensors |= {f"model.{k}": v for k, v in self.model.state_dict().items()}
        tensors |= {f"best.{k}": v for k, v in self.best.items()}
        if self.average is not None:
            tensors |= {f"average.{k}": v for k, v in self.average.weights.items()}
        facts = {
            "optimizer": optimizer, "epoch": self.epoch, "step": self.step,
            "snapshots": self.engine.snapshots, "losses": self.losses,
            "last_score": self.last_score, "scored_epoch": self.scored_epoch,
            "result": dataclasses.asdict(self.result),
            "metrics_bytes": [s.size for s in self.sinks if isinstance(s, JsonLines)],
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
        except (RuntimeError, ValueError, KeyError) as error:
            raise SgcnError(
                f"{self.state} does not fit this model, expected its own checkpoint: start again "
                f"with another output directory ({str(error).splitlines()[0]})"
            ) from None
        self.best = {k[5:]: v for k, v in tensors.items() if k.startswith("best.")}
        self.epoch, self.step = facts["epoch"], facts["step"]
        self.engine.snapshots, self.engine.steps = facts["snapshots"], facts["result"]["steps"]
        self.losses = facts["losses"]
        self.last_score, self.scored_epoch = facts["last_score"], facts["scored_epoch"]
        self.result = Fitted(**facts["result"])
        self.saved_steps = self.result.steps
        self.started = perf_counter() - self.result.seconds["total"]

    def close(self) -> None:
        self.prefetcher.close()


def make_optimizer(optimizer: Optimizer, model: Model, lr: float) -> torch.optim.Optimizer:
    """By name (adam, sgd, any of torch.optim), or by a function of the parameters."""
    if not isinstance(optimizer, str):
        return optimizer(model.parameters())
    if not lr > 0:
        raise SgcnError(f"lr is {lr}, expected a number > 0")
    known = {
        name.lower(): kind
        for name, kind in vars(torch.optim).items()
        if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer)
    }
    if optimizer not in known or optimizer == "optimizer":
        raise SgcnError(
            f"optimizer is {optimizer!r}, expected adam, sgd or another name of torch.optim in "
            f"small letters{nearest(optimizer, known)}"
        )
    kind: Any = light(known[optimizer])  # all take lr; their common base class does not
    # One loop over the numbers in place of ten; torch has it for these.
    fused = {"fused": True} if optimizer in ("adam", "adamw", "sgd", "adagrad") else {}
    made: torch.optim.Optimizer = kind(model.parameters(), lr=lr, **fused)
    return made

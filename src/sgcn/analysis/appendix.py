"""`measure`: the appendix's constants and bounds for a graph, a model and a sampler, and beside
each the same quantity as it is found there.

One set of draws serves both sides. The norms and distances that enter the bounds are those of the
draws, so that a bound holds for them as it stands, and not only up to chance.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array, csr_matrix
from torch import Tensor
from tqdm import tqdm

from sgcn.analysis import bounds
from sgcn.analysis.bounds import Constants, Distances, Norms, Theorem
from sgcn.analysis.moments import Mean, Split
from sgcn.analysis.network import Input, Matrix, Network, Pass, matrix_of, refusal, steepest
from sgcn.analysis.probe import GradientProbe, fresh_seeds
from sgcn.analysis.theory import DRAWS, Entries, Float64, Moments, formula
from sgcn.block import Batch
from sgcn.errors import SgcnError
from sgcn.estimators import make_estimator
from sgcn.estimators.engine import Engine
from sgcn.estimators.large_batch import suggest_large_batch
from sgcn.graph import Graph, is_sparse
from sgcn.machine import check_memory
from sgcn.nn import Model
from sgcn.options import Options, Rule, integer, option, part, real
from sgcn.rng import Key, Stream, check_seed
from sgcn.samplers import Sampler
from sgcn.samplers.exact import Exact
from sgcn.task import train_nodes
from sgcn.training.options import TaskOptions

_PROBES = 8
#: The constants, and what is measured beside them.
_WHAT = {
    "B_H": "largest |H|", "B_D": "largest |D|", "C_H": "layer by H", "C_W": "layer by W",
    "L_H": "D by D, H, W", "L_W": "G by D, H, W", "L_F": "gradient by weights",
}  # fmt: skip
_ROUNDING = 1e-6  # SGCN+ and SGCN++ are run in float32


@dataclass(frozen=True)
class Line:
    """A bound and what was measured; ``what`` names the measured quantity."""

    name: str
    what: str
    bound: float
    measured: float
    error: float = math.nan  # standard error of ``measured``, where it has one

    @property
    def holds(self) -> bool:
        return not self.measured > self.bound * (1.0 + _ROUNDING)

    @property
    def sentence(self) -> str:
        """How loose the bound is, in plain words."""
        if not math.isfinite(self.measured):
            return "could not be measured here"
        if self.bound == 0.0:
            return "the bound is 0" + ("" if self.measured == 0 else ", what was measured is not")
        if self.measured <= 0.0:
            return "nothing was found to compare the bound with"
        times = self.bound / self.measured
        if not self.holds:
            return f"the bound does not hold: {1.0 / times:.2g} times as much was measured"
        if times < 10.0:
            return f"close: {times:.2g} times what was measured"
        if times < 1e6:
            return f"loose: {times:.2g} times what was measured"
        return f"says nothing: 10^{math.log10(times):.0f} times what was measured"


@dataclass(frozen=True)
class Report:
    """What `measure` found."""

    norms: Norms
    constants: Constants
    distances: Distances
    deltas: dict[str, float]
    lines: list[Line]
    steps: int
    theorems: list[Theorem]
    #: The ``error`` asked for, the ``nodes`` B' for it, and the ``measured_error`` of such
    #: snapshots, root of the mean square.
    large_batch: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        lines = [asdict(line) | {"sentence": line.sentence} for line in self.lines]
        return asdict(self) | {"lines": lines}


@dataclass(frozen=True)
class BoundOptions(Options):
    """What the bounds are asked for.

    ``gap``, ``alpha`` and ``beta`` are those of SGCN+ and SGCN++, which are measured on plain steps
    of the learning ``rate``.
    """

    batch_size: int = option(512, integer(), "seeds of a batch")
    draws: int = option(200, DRAWS, "samples to draw")
    seed: int = option(0, integer(0), "of the draws")
    gap: int = option(10, integer(), "steps between snapshots K")
    alpha: float = option(1.1, real(1.0), "growth of H that calls a restart")
    beta: float = option(1.1, real(1.0), "growth of D that calls a restart")
    rate: float = option(0.01, real(0.0, open_=True), "learning rate of the steps")
    steps: int = option(1000, integer(), "T of the theorems")
    error: float = option(
        0.1,
        Rule("a number > 0", lambda v: real(0.0, open_=True).test(v) and math.isfinite(v)),
        "relative error that a large-batch snapshot may have",
    )
    task: TaskOptions = part(TaskOptions, "what is learned")


def measure(model: Model, graph: Graph, sampler: Sampler, options: BoundOptions) -> Report:
    """Bounds and measurements at the weights of ``model``, which stays as it is."""
    why = refusal(model, options.task.on(graph))
    if why is not None:
        raise SgcnError(why)
    setting = _Setting(model, graph, sampler, options)
    found = _Draws(setting, options.draws)
    for draw in tqdm(range(options.draws), desc=sampler.name, leave=False, disable=None):
        found.add(draw)
    first, second = _walk(setting, "sgcn+"), _walk(setting, "sgcn++")
    means = found.means()
    n = found.norms(means, max(first.weight_norm, second.weight_norm))
    c, s = Constants.of(n), found.distances(means)
    noise, of_mean = bounds.delta_n(n, s), bounds.delta_b(n, s)
    plus = bounds.delta_plus(n, s, options.gap, options.alpha)
    plus_plus = bounds.delta_plus_plus(n, s, options.gap, options.alpha, options.beta)
    deltas = {"Delta_n": noise, "Delta_b": of_mean, "Delta_b+'": plus, "Delta++'": plus_plus}
    if not all(math.isfinite(value) for value in [*vars(c).values(), *deltas.values()]):
        raise BeyondNumbersError(
            f"the bounds of {n.depth} layers are beyond 1e308, expected numbers: take fewer layers "
            "or a smaller graph"
        )
    bar = setting.network.forward([setting.matrix(mean) for mean in means], setting.x)
    far = _apart(setting.gradients(setting.network, bar).gs, setting.exact.gs)
    split = Split.of(found.errors @ found.errors.T, 1.0)
    measured = found.largest | {"L_F": setting.smoothness()}
    both = 2.0 * (noise + of_mean)  # |E G~ - G|^2 <= 2 E|G~ - Gbar|^2 + 2 |Gbar - G|^2
    of_plus = options.rate * options.rate * plus
    of_plus_plus = second.longest_step * second.longest_step * plus_plus
    lines = [
        *(Line(name, what, getattr(c, name), measured[name]) for name, what in _WHAT.items()),
        Line("Delta_n", "SGCN: variance", noise, *split.variance),
        Line("Delta_b", "SGCN: |Gbar - G|^2", of_mean, far),
        Line("2 (Delta_n + Delta_b)", "SGCN: squared bias", both, *split.bias2),
        Line("eta^2 Delta_b+'", "SGCN+: |G^ - G|^2", of_plus, first.error.value),
        Line("eta^2 Delta++' |G~|^2", "SGCN++: E|G~ - G|^2", of_plus_plus, *second.error),
    ]
    size = suggest_large_batch(
        model, graph, options.error, seed=setting.seed, task=setting.task
    )
    large_batch = {"error": options.error, "nodes": size}
    large_batch["measured_error"] = _snapshot_error(setting, size)
    theorems = bounds.theorems(c, options.steps, setting.exact.loss, *deltas.values())
    return Report(n, c, s, deltas, lines, options.steps, theorems, large_batch)


def check_room(model: Model, graph: Graph, draws: int) -> None:
    """Refuse more draws than memory has room for."""
    shapes = [layer.get_parameter("weight").shape for layer in model.layers]
    weights, widths = sum(a * b for a, b in shapes), sum(a + b for a, b in shapes)
    entries = graph.edges + len(graph) * graph.self_loops
    check_memory(
        8 * (draws * weights + 3 * model.depth * entries + 4 * len(graph) * widths),
        f"{draws:,} gradients of {weights:,} weights, {entries:,} entries and an exact pass",
        "take fewer draws, narrower layers or a smaller graph",
    )


class BeyondNumbersError(SgcnError):
    """The bounds are larger than any float64."""


class _Setting:
    """The graph's matrix, features and loss in float64, and the exact gradient."""

    def __init__(self, model: Model, graph: Graph, sampler: Sampler, options: BoundOptions) -> None:
        self.model, self.graph, self.sampler, self.options = model, graph, sampler, options
        self.seed = check_seed(options.seed)
        self.task, self.train = options.task.on(graph), train_nodes(graph)
        rows = np.arange(len(graph), dtype=np.int32)
        self.entries = Entries.of(graph, rows)
        self.P = self.matrix(self.entries.value)
        self.row_squares = np.bincount(self.entries.row, self.entries.value**2, len(graph))
        x: Any = graph.x
        self.x: Input = (
            csr_array(x, dtype=np.float64) if is_sparse(x)
            else torch.from_numpy(np.asarray(x)).double()
        )  # fmt: skip
        self.x_norm = math.sqrt(float((self.x * self.x).sum()))
        if self.x_norm == 0.0:
            raise SgcnError("the features are all zero, expected some that are not")
        self.network = Network(model, self.task)
        self.exact = self.gradients(self.network)

    def matrix(self, values: Float64) -> Matrix:
        """The N x N matrix with these values where P has its entries."""
        n = len(self.graph)
        return csr_matrix((values, (self.entries.row, self.entries.col)), (n, n))

    def gradients(self, network: Network, zs: list[Tensor] | None = None) -> Pass:
        """The exact pass of ``network``, or the one through given Z (of a Pbar, of tables)."""
        train = torch.from_numpy(self.train).long()
        mean = torch.full((len(train),), 1.0 / len(train), dtype=torch.float64)
        return network.gradients([self.P] * network.depth, self.x, train, train, mean, zs)

    def smoothness(self) -> float:
        """L_F as it is: how fast the exact gradient turns, in the steepest direction found."""
        weights = self.network.weights

        def gradient(flat: Tensor) -> Tensor:
            there = copy.copy(self.network)
            parts = torch.split(flat, [w.numel() for w in weights])
            there.weights = [part.view_as(w) for part, w in zip(parts, weights, strict=True)]
            return _flat(self.gradients(there).gs)

        return steepest(gradient, _flat(weights), min(float(w.norm()) for w in weights))

    def draw(self, key: Key) -> Batch:
        """A batch as training draws it."""
        size = self.options.batch_size
        seeds = fresh_seeds(self.sampler, self.train, len(self.graph), size, key)
        return self.sampler.sample(self.graph, seeds, key, self.model.depth)


class _Draws:
    """Sampled gradients and distances, draw by draw."""

    def __init__(self, setting: _Setting, draws: int) -> None:
        self.setting, self.draws = setting, draws
        check_room(setting.model, setting.graph, draws)
        network, depth = setting.network, setting.model.depth
        self.errors = np.empty((draws, sum(w.numel() for w in network.weights)))
        self.moments = [Moments(setting.entries, 1) for _ in range(depth)]
        self.batch = 0.0
        #: The largest norms and quotients seen, by the names of what bounds them.
        self.largest = {"B_LA": float(np.sqrt(setting.row_squares.sum())), "loss weights": 1.0}
        self._see(setting.exact)
        self._note(network.lipschitz([setting.P] * depth, setting.exact))
        self._stream = int(Key(setting.seed).stream(Stream.BOUND_DRAWS)) >> 1

    def _note(self, sizes: Mapping[str, float]) -> None:
        for name, size in sizes.items():
            self.largest[name] = max(self.largest.get(name, 0.0), size)

    def _see(self, found: Pass) -> None:
        for name, parts in (("B_H", found.hs[1:]), ("B_D", found.ds)):
            self._note({name: max(float(part.norm()) for part in parts)})

    def add(self, draw: int) -> None:
        setting, network = self.setting, self.setting.network
        batch = setting.draw(Key(self._stream, draw))
        matrices = [matrix_of(block) for block in batch.blocks]
        for moments, block in zip(self.moments, batch.blocks, strict=True):
            moments.add(0, block)
            self._note({"B_LA": float(np.linalg.norm(block.weights.astype(np.float64)))})
        w = torch.from_numpy(batch.loss_weights).double()
        n = len(setting.train)
        self.batch += float((w * w).sum() - 2.0 / n * w.sum()) + 1.0 / n
        self._note({"loss weights": max(float(w.max()), float(w.norm()))})
        nodes = torch.from_numpy(batch.nodes).long()
        rows = torch.arange(len(nodes))
        found = network.gradients(matrices, setting.x[batch.inputs], nodes, rows, w)
        self.errors[draw] = (_flat(found.gs) - _flat(setting.exact.gs)).numpy()
        self._see(found)
        if draw == 0:
            self._note(network.lipschitz(matrices, found))

    def means(self) -> list[Float64]:
        """Pbar of each layer, as values of the entries of P.

        P itself where the sampler is known to be unbiased; else the mean of the draws that met a
        row, and P in rows that none has met.
        """
        graph, sampler, depth = self.setting.graph, self.setting.sampler, self.setting.model.depth
        exact, row = self.setting.entries.value, self.setting.entries.row
        known = formula(graph, sampler, np.arange(len(graph), dtype=np.int32), depth)
        weighting = getattr(sampler, "weighting", "unbiased")
        if weighting == "unbiased" if known is None else known[1] == 0.0:
            return [exact] * depth
        found = []
        for moments in self.moments:
            times = moments.kept[0][row]
            found.append(np.where(times > 0, moments.total[0] / np.maximum(times, 1), exact))
        return found

    def distances(self, means: Sequence[Float64]) -> Distances:
        value, row = self.setting.entries.value, self.setting.entries.row
        levels = []
        for moments, mean in zip(self.moments, means, strict=True):
            kept, apart = moments.kept[0], (mean - value) ** 2
            far = moments.squares[0] - 2.0 * value * moments.total[0] + value**2 * kept[row]
            bias = float((apart * kept[row]).sum()) / self.draws
            noise = max(float(far.sum()) / self.draws - bias, 0.0)
            absent = float(((self.draws - kept) * self.setting.row_squares).sum()) / self.draws
            levels.append((noise, bias, float(apart.sum()), absent))
        noises, biases, biases_all, absents = zip(*levels, strict=True)
        batch = max(self.batch, 0.0) / self.draws
        return Distances(noises, biases, biases_all, absents, batch)

    def norms(self, means: Sequence[Float64], weight_norm: float) -> Norms:
        network = self.setting.network
        B_LA = max(self.largest["B_LA"], *(float(np.linalg.norm(mean)) for mean in means))
        C_loss, L_loss = (c * self.largest["loss weights"] for c in network.loss_constants())
        smooth = bounds.SMOOTH[network.model.activation]
        return Norms(network.depth, *smooth, C_loss, L_loss, B_LA, weight_norm, self.setting.x_norm)


# -- SGCN+ and SGCN++ over some steps -------------------------------------------------------------


@dataclass(frozen=True)
class _Walk:
    """K plain steps from a snapshot on."""

    weight_norm: float
    longest_step: float
    #: The largest of its steps. SGCN+: |G^ - G|^2, G^ the exact gradient through the tables.
    #: SGCN++: E|G~ - G|^2.
    error: Mean


def _walk(setting: _Setting, name: str) -> _Walk:
    model, options = copy.deepcopy(setting.model), setting.options
    doubly = name == "sgcn++"
    estimator = make_estimator(
        name, gap=max(options.gap, 2), alpha=options.alpha, beta=options.beta, restart="norm",
        **{"layer_gradients": True} if doubly else {},
    )  # fmt: skip
    # All nodes are scored, so that the tables have all rows.
    engine = Engine(
        estimator, model, setting.graph, setting.task, setting.train, setting.sampler,
        seed=setting.seed, scored=np.arange(len(setting.graph), dtype=np.int32),
    )  # fmt: skip
    # The head, part of the loss, stays.
    optimizer = torch.optim.SGD(model.layers.parameters(), options.rate)
    names = [name for name, _ in model.named_parameters() if name.startswith("layers.")]
    stream = int(Key(setting.seed).stream(Stream.BOUND_WALK)) >> 1
    exact, longest, errors = setting.exact, 0.0, list[Mean]()
    weight_norm = setting.network.weight_norm
    for step in tqdm(range(options.gap), desc=name, leave=False, disable=None):
        key = Key(stream, step)
        if step > 0 and doubly:
            errors.append(_sampled_error(setting, engine, step, exact))
        outcome = engine.regular(setting.draw(key), key) if step > 0 else engine.snapshot()
        if outcome is None:  # a restart: the paper's recursion ends here
            break
        engine.apply(outcome, optimizer)
        square = sum(float(outcome.gradient[name].square().sum()) for name in names)
        longest = max(longest, options.rate * math.sqrt(square))
        if step > 0 and not doubly:  # both at the weights of before the step
            network = Network(engine.model, setting.task, engine.previous)
            tables = [history.all_rows().double() for history in engine.histories]
            through = setting.gradients(network, tables)
            errors.append(Mean(_apart(through.gs, exact.gs), math.nan))
        network = Network(model, setting.task)
        weight_norm = max(weight_norm, network.weight_norm)
        exact = setting.gradients(network)
    nothing = Mean(math.nan, math.nan)
    return _Walk(weight_norm, longest, max(errors, key=lambda one: one.value, default=nothing))


def _sampled_error(setting: _Setting, engine: Engine, step: int, exact: Pass) -> Mean:
    """E|G~ - G|^2 over the graph layers, from the probe's figures, which are over |G|^2."""
    probe = GradientProbe(_PROBES, seed=setting.seed)
    layers = probe.measure(engine, setting.options.batch_size, step).layers
    parts = [
        (size * layer.gradient.mse.value, size * layer.gradient.mse.error)
        for size, layer in zip((float(g.square().sum()) for g in exact.gs), layers, strict=False)
        if size > 0
    ]
    return Mean(sum(value for value, _ in parts), math.hypot(*(error for _, error in parts)))


def _snapshot_error(setting: _Setting, size: int) -> float:
    """The relative error that exact gradients of ``size`` nodes have, root of the mean square."""
    if size >= len(setting.train):
        return 0.0
    engine = Engine(
        make_estimator("sgcn"), setting.model, setting.graph, setting.task, setting.train, Exact(),
        seed=setting.seed,
    )  # fmt: skip
    found = GradientProbe(_PROBES, seed=setting.seed).measure(engine, size)
    return math.sqrt(max(found.total.mse.value, 0.0))


def _flat(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat([part.flatten() for part in parts])


def _apart(a: Sequence[Tensor], b: Sequence[Tensor]) -> float:
    return sum(float((x - y).square().sum()) for x, y in zip(a, b, strict=True))

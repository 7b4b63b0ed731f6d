"""Layers and models against PyG and dense algebra, and what a model refuses."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import nn

from helpers import SMALL, propagation_of
from learning import (
    BUILT,
    KINDS,
    OWN_ROWS,
    DenseOperator,
    drive,
    early,
    float64,
    labelled,
    make_engine,
    small_model,
)
from sgcn import Key, Model, SgcnError, fit, make_model
from sgcn.compute.exact import embed, predict
from sgcn.compute.operators import BlockOperator, GraphOperator
from sgcn.nn import ACTIVATIONS, JUMPS, LAYERS, NORMS, Attention, GraphConv
from sgcn.nn import layers as layers_module
from sgcn.rows import LazyRows, store_of
from sgcn.training.events import EpochEvent
from sgcn.training.sinks import Memory

GRAPH = labelled()


def edge_index(graph) -> torch.Tensor:
    rows = np.repeat(np.arange(len(graph)), np.diff(graph.indptr))
    return torch.from_numpy(np.stack([graph.indices, rows])).long()


def outputs_and_gradients(out: torch.Tensor, parameters, seed=0) -> list[torch.Tensor]:
    g = torch.randn(out.shape, generator=torch.Generator().manual_seed(seed))
    return [out.detach(), *torch.autograd.grad(out, parameters, g)]


def assert_near(ours, theirs) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert (a - b).norm() <= 1e-5 * b.norm()


def test_mean_is_pyg_gcn_conv():
    pyg = pytest.importorskip("torch_geometric.nn")
    ours, theirs = GraphConv(5, 7), pyg.GCNConv(5, 7)
    with torch.no_grad():
        ours.bias.normal_(generator=torch.Generator().manual_seed(1))
        theirs.lin.weight.copy_(ours.weight.T)
        theirs.bias.copy_(ours.bias)
    x = torch.from_numpy(GRAPH.x)
    a = outputs_and_gradients(ours(GraphOperator(GRAPH), x), [ours.weight, ours.bias])
    b = outputs_and_gradients(theirs(x, edge_index(GRAPH)), [theirs.lin.weight, theirs.bias])
    assert_near(a, [b[0], b[1].T, b[2]])


def test_a_mean_model_is_a_stack_of_gcn_convs():
    pyg = pytest.importorskip("torch_geometric.nn")
    model = small_model("mean", 3)
    convs = [pyg.GCNConv(*layer.weight.shape) for layer in model.layers]
    for conv, layer in zip(convs, model.layers, strict=True):
        conv.lin.weight.data.copy_(layer.weight.T)
    h = torch.from_numpy(GRAPH.x)
    for conv in convs:
        h = nn.functional.elu(conv(h, edge_index(GRAPH)))
    theirs = outputs_and_gradients(model.head(h), [conv.lin.weight for conv in convs])
    ours = outputs_and_gradients(
        model([GraphOperator(GRAPH)] * 3, LazyRows(store_of(GRAPH.x))),
        [layer.weight for layer in model.layers],
    )
    assert_near(ours, [theirs[0], *(g.T for g in theirs[1:])])


@pytest.mark.parametrize("heads", [1, 4])
def test_attention_on_row_normalisation_is_pyg_gat_conv(heads):
    pyg = pytest.importorskip("torch_geometric.nn")
    graph = labelled(normalization="row")
    ours, theirs = Attention(5, 8, heads), pyg.GATConv(5, 8 // heads, heads)
    with torch.no_grad():
        theirs.lin.weight.copy_(ours.weight.T)
        theirs.att_src.copy_(ours.left[None])
        theirs.att_dst.copy_(ours.right[None])
    x = torch.from_numpy(graph.x)
    a = outputs_and_gradients(
        ours(GraphOperator(graph), x), [ours.weight, ours.left, ours.right, ours.bias]
    )
    b = outputs_and_gradients(
        theirs(x, edge_index(graph)),
        [theirs.lin.weight, theirs.att_src, theirs.att_dst, theirs.bias],
    )
    assert_near(a, [b[0], b[1].T, b[2][0], b[3][0], b[4]])


@pytest.mark.parametrize("kind", LAYERS)
def test_layers_are_their_formulas(kind):
    """Dense P, float64, written out."""
    with float64():
        model, P = small_model(kind, 1), torch.from_numpy(propagation_of(GRAPH))
        layer, x = model.layers[0], torch.from_numpy(GRAPH.x).double()
        w = dict(layer.named_parameters())
        if kind == "mean":
            wanted = P @ x @ w["weight"] + w["bias"]
        elif kind == "concat":
            wanted = torch.cat([x @ w["weight"], P @ x @ w["weight"]], 1) + w["bias"]
        elif kind == "gin":
            mixed = (1 + w["eps"]) * x + P @ x
            wanted = layer.outer(torch.relu(layer.inner(mixed)))
        else:
            wanted = attention_by_hand(layer, P, x)
        torch.testing.assert_close(layer(DenseOperator(P), x), wanted)


def attention_by_hand(layer, P, x):
    parts = []
    for head in range(layer.heads):
        columns = slice(head * layer.width // layer.heads, (head + 1) * layer.width // layer.heads)
        turned = x @ layer.weight[:, columns]
        score = (turned @ layer.right[head])[:, None] + (turned @ layer.left[head])[None]
        share = P * torch.exp(nn.functional.leaky_relu(score, 0.2))
        parts.append(share / share.sum(1, keepdim=True) @ turned)
    return torch.cat(parts, 1) + layer.bias


@pytest.mark.parametrize("name", OWN_ROWS)
@pytest.mark.parametrize("kind", ["mean", "concat"])
def test_both_orders_give_the_same(kind, name, monkeypatch):
    """Aggregate first or transform first: the choice is one of cost only."""
    (block,) = SMALL[name].sample(GRAPH, [0, 3, 9, 12], Key(2), depth=1).blocks
    layer, found = small_model(kind, 1).layers[0], []
    h = torch.randn(len(block.src), 5, generator=torch.Generator().manual_seed(0))
    for first in (True, False):
        monkeypatch.setattr(layers_module, "aggregate_first", lambda *_, first=first: first)
        leaf = h.clone().requires_grad_()
        out = layer(BlockOperator(block), leaf)
        found.append(outputs_and_gradients(out, [leaf, layer.weight, layer.bias]))
    assert_near(*found)


def test_the_cheaper_order_is_taken():
    operator = GraphOperator(GRAPH)
    assert layers_module.aggregate_first(operator, torch.ones(60, 4), 100)
    assert not layers_module.aggregate_first(operator, torch.ones(60, 100, requires_grad=True), 4)


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_features_are_dense_ones(kind):
    x = np.where(GRAPH.x > 0.3, GRAPH.x, 0.0).astype(np.float32)
    model, found = small_model(kind, 2), []
    for features in (store_of(x), store_of(sp.csr_array(x))):
        out = model([GraphOperator(GRAPH)] * 2, LazyRows(features))
        found.append(outputs_and_gradients(out, list(model.parameters())))
    assert_near(*found)


@pytest.mark.parametrize("kind", KINDS)
def test_inference_in_slices(kind):
    model, features = small_model(kind, 3), store_of(GRAPH.x)
    whole = model([GraphOperator(GRAPH)] * 3, LazyRows(features)).detach()
    torch.testing.assert_close(predict(model, GRAPH, features), whole)
    torch.testing.assert_close(predict(model, GRAPH, features, chunk=7), whole)
    assert embed(model, GRAPH, features).shape == (60, model.head.in_features)


# -- models -------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("norm", NORMS)
def test_norm_residual_and_jump_are_their_formulas(norm, residual, jump):
    """Three `mean` layers, in NumPy: the first projects its own row, the others add it."""
    model = make_model(5, 3, widths=6, layers=3, norm=norm, residual=residual, jump=jump, seed=2)
    weights = {name: p.detach().double().numpy() for name, p in model.named_parameters()}
    P, h, found = propagation_of(GRAPH), GRAPH.x.astype(float), []
    for level in range(3):
        names = [n for n in weights if n.startswith(f"layers.{level}.") and "skip" not in n]
        z = P @ h @ weights[names[0]]
        if residual:
            z += h if level else h @ weights["layers.0.skip"]
        if norm == "layer":
            z = (z - z.mean(1, keepdims=True)) / np.sqrt(z.var(1, keepdims=True) + 1e-5)
        h = np.where(z > 0, z, np.expm1(z))
        found.insert(0, h)
    top = {"none": h, "cat": np.concatenate(found, 1), "max": np.max(found, 0)}[jump]
    wanted = top @ weights["head.weight"].T + weights["head.bias"]
    np.testing.assert_allclose(predict(model, GRAPH, store_of(GRAPH.x)), wanted, 1e-3, 1e-5)


@pytest.mark.parametrize("estimator", ["sgcn", "sgcn++", "vrgcn++", "anchored++"])
@pytest.mark.parametrize("kind", BUILT)
def test_built_models_learn(kind, estimator):
    """With dropout, P X and a sampler that keeps destinations."""
    model, memory = small_model(kind, 3, dropout=0.2), Memory()
    fit(
        model, GRAPH, estimator=early(estimator, gap=5), sampler=SMALL["ladies-keep"], epochs=10,
        batch_size=10, lr=0.03, sinks=[memory], preaggregate=True,
    )  # fmt: skip
    losses = [event.loss for event in memory.events if isinstance(event, EpochEvent)]
    assert losses[-1] < 0.9 * losses[0]


def test_what_the_first_layer_keeps_beside_norm_residual_and_jump():
    first, *others = small_model("cat", 3).layers
    assert all((first.lazy_rows, first.linear, first.sums_inputs, first.reads_own))
    assert [layer.carried for layer in (first, *others)] == [0, 12, 26]
    assert not small_model("max", 2).layers[1].inner.linear  # weights of zero give h itself


def test_without_a_head_the_last_layer_gives_the_logits():
    model = make_model(5, 3, widths=(4, 6), head=False)
    assert [layer.width for layer in model.layers] == [4, 3]
    assert {name.partition(".")[0] for name, _ in model.named_parameters()} == {"layers"}
    z = torch.tensor([[-1.0, 2.0]])
    assert torch.equal(model.act(z, 1), z)
    assert not torch.equal(model.act(z, 0), z)
    with pytest.raises(SgcnError, match="keep the head"):
        make_model(5, 3, layer="concat", head=False)


def test_widths_and_seeds():
    model = make_model(5, 3, layer="concat", widths=(4, 6), seed=1)
    assert [layer.width for layer in model.layers] == [8, 12]
    assert model.head.in_features == 12
    same, other = (make_model(5, 3, layer="concat", widths=(4, 6), seed=s) for s in (1, 2))
    assert torch.equal(model.head.weight, same.head.weight)
    assert not torch.equal(model.head.weight, other.head.weight)
    assert [layer.width for layer in make_model(5, 3).layers] == [256, 256]


def test_making_a_model_leaves_torchs_generator_alone():
    torch.manual_seed(5)
    wanted = torch.rand(1)
    torch.manual_seed(5)
    make_model(5, 3)
    assert torch.equal(torch.rand(1), wanted)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"layer": "concatt"}, "did you mean 'concat'"),
        ({"activation": "rel"}, "did you mean 'relu'"),
        ({"widths": 0}, "widths are"),
        ({"layers": 0}, "widths are"),
        ({"widths": ()}, "widths are"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"dropout": -0.1}, "dropout is -0.1"),
        ({"norm": "batch"}, "norm is 'batch', expected one of none, layer"),
        ({"jump": "catt"}, "did you mean 'cat'"),
        ({"jump": "max", "widths": (6, 7)}, r"widths are \[6, 7\], expected one width"),
        ({"jump": "cat", "head": False}, "no head reads the layers"),
    ],
)
def test_bad_models(options, words):
    with pytest.raises(SgcnError, match=words) as caught:
        make_model(5, 3, **options)
    assert "\n" not in str(caught.value)


def test_batch_norm_is_refused():
    head = nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 3))
    with pytest.raises(SgcnError, match=r"head\.0 is a batch-norm.*LayerNorm"):
        Model([GraphConv(5, 6)], head)
    Model([GraphConv(5, 6)], nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 3)))


class Drops(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, block, h):
        return self.drop(block.aggregate(h))


@pytest.mark.parametrize(
    "made",
    [
        lambda: Model([Drops()]),
        lambda: Model([GraphConv(5, 6)], nn.Sequential(nn.AlphaDropout(0.5), nn.Linear(6, 3))),
        lambda: Model([pytest.importorskip("torch_geometric.nn").GATConv(
            5, 6, dropout=0.5, add_self_loops=False)]),
    ],
)  # fmt: skip
def test_layers_that_drop_by_themselves_are_refused(made):
    with pytest.raises(SgcnError, match=r"drops by itself .*take Model\(..., dropout=0.5\)"):
        made()
    Model([GraphConv(5, 6)], nn.Sequential(nn.Dropout(0.0), nn.Linear(6, 3)), dropout=0.5)


class Forgetful(GraphConv):
    """Drops by a function, which nobody sees in its parts."""

    def forward(self, block, h):
        return nn.functional.dropout(super().forward(block, h), 0.5, self.training)


def test_layers_that_differ_from_pass_to_pass_are_refused():
    graph = labelled()
    model = Model([Forgetful(5, 64)], nn.Linear(64, 4))
    with pytest.raises(SgcnError, match=r"other outputs when it runs again.*dropout=p\)"):
        fit(model.eval(), graph, steps=1)
    assert not model.training


class Moody(nn.Module):
    """Gives something else in training."""

    def forward(self, block, h):
        return block.aggregate(h) * (1.0 + self.training)


def test_scores_are_those_of_eval_and_modes_are_put_back():
    model = Model([Moody(), GraphConv(5, 4)])
    model.layers[1].eval()
    modes = [module.training for module in model.modules()]
    found = predict(model, GRAPH, store_of(GRAPH.x))
    assert torch.equal(found, embed(model, GRAPH, store_of(GRAPH.x)))
    assert [module.training for module in model.modules()] == modes
    torch.testing.assert_close(found, predict(model.eval(), GRAPH, store_of(GRAPH.x)))
    with pytest.raises(RuntimeError):
        predict(model.train(), GRAPH, store_of(GRAPH.x[:, :3]))
    assert all(module.training for module in model.modules())


def test_jump_needs_layers_that_hand_rows_on():
    with pytest.raises(SgcnError, match="make_model, or its layers by Carry"):
        Model([GraphConv(5, 6), GraphConv(6, 6)], nn.Linear(12, 3), jump="cat")


def test_no_layers():
    with pytest.raises(SgcnError, match="no graph layers"):
        Model([], nn.Linear(5, 3))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation_trains(name):
    fit(small_model(activation=name), GRAPH, epochs=1, batch_size=15)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "mean"])
@pytest.mark.parametrize("sampler", ["ladies", "fastgcn"])
def test_layers_that_read_the_node_itself_need_it_in_the_sample(kind, sampler):
    with pytest.raises(SgcnError, match="keep_destinations to true") as caught:
        fit(small_model(kind), GRAPH, sampler=SMALL[sampler], epochs=4, batch_size=10)
    assert "\n" not in str(caught.value)


class Plus(nn.Module):
    """A user's layer: knows only ``forward(block, h)``."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.inner = nn.Linear(d_in, d_out)

    def forward(self, block, h):
        return self.inner(block.aggregate(h)) + self.inner(block.own(h)).tanh()


class Bare(nn.Module):
    """A user's layer without parameters."""

    def forward(self, block, h):
        return block.aggregate(h)


STACKS = {
    "two": lambda: [Plus(5, 6), Plus(6, 4)],
    "bare first": lambda: [Bare(), Plus(5, 4)],
    "bare last": lambda: [Plus(5, 4), Bare()],
}


@pytest.mark.parametrize("estimator", ["full", "sgcn", "sgcn++", "vrgcn++", "anchored"])
@pytest.mark.parametrize("preaggregate", [False, True])
@pytest.mark.parametrize("stack", STACKS)
def test_layers_of_a_user(stack, preaggregate, estimator):
    model, memory = Model(STACKS[stack](), nn.Linear(4, 4)), Memory()
    fit(
        model, GRAPH, estimator=estimator, epochs=8, batch_size=15, lr=0.03, sinks=[memory],
        preaggregate=preaggregate, optimizer="adam",
    )  # fmt: skip
    losses = [event.loss for event in memory.events if isinstance(event, EpochEvent)]
    assert losses[-1] < 0.9 * losses[0]


def test_a_layer_that_hands_on_what_it_was_given():
    """Histories are written to: they must not be the table of P X that such a layer returns."""
    engine = make_engine(
        GRAPH, "sgcn++", "neighbor", Model([Bare(), Plus(5, 4)], nn.Linear(4, 4)), preaggregate=True
    )
    before = engine.operands.sums.table.clone()
    list(drive(engine, 1))
    engine.histories[0].all_rows().sub_(1.0)
    assert torch.equal(engine.operands.sums.table, before)

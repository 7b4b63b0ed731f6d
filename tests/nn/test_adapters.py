"""Modules that are no layers of ours: plain ones, and convolutions of PyG."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.optim import SGD

from learning import distance, drive, exact_gradient, labelled, make_engine
from sgcn import Model, SgcnError, fit
from sgcn.nn import GraphConv, MessagePassing, PlainModule, as_layer
from sgcn.nn.layers import Dense

pyg = pytest.importorskip("torch_geometric.nn")
GRAPH = labelled()


def gcn(d_in: int, d_out: int) -> nn.Module:
    return pyg.GCNConv(d_in, d_out, normalize=False, add_self_loops=False, bias=False)


class Aggregate(nn.Module):
    def forward(self, block, h):
        return block.aggregate(h)


class ByEdges(nn.Module):
    def forward(self, x, edge_index):
        return x


class AllRows(nn.Module):
    def forward(self, block, h):
        return h


def test_what_becomes_of_a_module():
    assert isinstance(as_layer(gcn(5, 4)), MessagePassing)
    assert isinstance(as_layer(Aggregate()), PlainModule)
    ours = GraphConv(5, 4)
    assert as_layer(ours) is ours


@pytest.mark.parametrize("estimator", ["sgcn", "sgcn++", "anchored++", "vrgcn++"])
@pytest.mark.parametrize("sampler", ["neighbor", "ladies-keep", "saint-node"])
def test_gcnconv_is_our_mean(sampler, estimator):
    """The same weights give the same gradients, on every sample."""
    torch.manual_seed(0)
    theirs = Model([gcn(5, 7), gcn(7, 6)], Dense(6, 4))
    ours = Model([GraphConv(5, 7, bias=False), GraphConv(7, 6, bias=False)], Dense(6, 4))
    names = {f"layers.{level}.weight": f"layers.{level}.conv.lin.weight" for level in (0, 1)}
    weights = theirs.state_dict()
    turned = {name: weights[other].T for name, other in names.items()}
    ours.load_state_dict(turned | {k: v for k, v in weights.items() if k.startswith("head.")})
    steps = []
    for model in (ours, theirs):
        engine = make_engine(GRAPH, estimator, sampler, model)
        steps.append([o.gradient for o in drive(engine, 4, lambda m: SGD(m.parameters(), 0.05))])
    for a, b in zip(*steps, strict=True):
        for name, other in names.items():
            torch.testing.assert_close(a[name], b[other].T, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda a, b: pyg.SAGEConv(a, b), lambda a, b: pyg.GATv2Conv(a, b, add_self_loops=False),
        lambda a, b: pyg.GINConv(nn.Linear(a, b)), lambda a, b: pyg.TransformerConv(a, b),
        lambda a, b: pyg.GraphConv(a, b),
    ],
    ids=["sage", "gatv2", "gin", "transformer", "graph"],
)  # fmt: skip
def test_any_convolution_gives_the_full_gradient(make):
    """With exact blocks of all training nodes, corrected or not."""
    for name in ("sgcn", "sgcn++", "anchored"):
        torch.manual_seed(1)
        model = Model([make(5, 7), make(7, 4)], nn.Linear(4, 4))
        engine = make_engine(GRAPH, name, "exact", model)
        for outcome in drive(engine, 3, size=None):
            wanted = exact_gradient(model, GRAPH)
            found = {k: g for k, g in outcome.gradient.items() if k in wanted}
            assert distance(found, wanted) < 1e-4


def test_fit_takes_them():
    model = Model([pyg.SAGEConv(5, 8), pyg.SAGEConv(8, 8)], nn.Linear(8, 4))
    assert fit(model, GRAPH, sampler="neighbor", epochs=2, batch_size=8).test["f1_micro"] > 0.1


@pytest.mark.parametrize("conv", [lambda: pyg.GCNConv(5, 4), lambda: pyg.GATConv(5, 4)])
def test_what_would_be_done_twice_is_refused(conv):
    with pytest.raises(SgcnError, match="make it with"):
        Model([conv()])


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.Linear(5, 4), r"Linear takes \(input.*expected a graph layer with forward\(block, h\)"),
        (ByEdges(), r"ByEdges takes \(x, edge_index\), expected forward\(block, h\), where"),
    ],
)
def test_modules_that_take_no_block(module, words):
    with pytest.raises(SgcnError, match=words):
        Model([module])


def test_a_layer_that_gives_all_rows():
    model = Model([AllRows(), GraphConv(GRAPH.x.shape[1], 4)], Dense(4, 4))
    with pytest.raises(SgcnError, match=r"AllRows gave \d+ rows, expected \d+, one for each dest"):
        fit(model, GRAPH, steps=1, preaggregate=False)

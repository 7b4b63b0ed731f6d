"""One declaration of an option serves the file, --set, flags, `fit` and the docs."""

from __future__ import annotations

import argparse
import inspect
import subprocess
import sys
import tomllib
from dataclasses import dataclass, fields, replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from learning import labelled, small_model
from sgcn import SgcnError, Training, fit, make_estimator, make_sampler, nn
from sgcn.commands import shared, train
from sgcn.data import load
from sgcn.estimators import ESTIMATORS
from sgcn.options import integer, option
from sgcn.runs.config import Config, assign, make_config, toml_value
from sgcn.runs.directory import prepare
from sgcn.samplers import SAMPLERS
from sgcn.training import options as declared
from sgcn.training.options import (
    PRESETS,
    SECTIONS,
    LoopOptions,
    ModelOptions,
    Named,
    OptimizerOptions,
    flags,
    keywords_of_fit,
)

HOME = Path(__file__).parents[2]
CONFIG = Config("x", Training())


def tool():
    spec = spec_from_file_location("options_table", HOME / "tools" / "options_table.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def every_option() -> list[tuple[str, str]]:
    return [(section, key) for section, table in CONFIG.training.tables().items() for key in table]


@pytest.mark.parametrize(("section", "key"), every_option())
def test_an_option_is_everywhere(section, key):
    value = CONFIG.training.tables()[section][key]
    shown = {None: "none"}.get(value, list(value) if isinstance(value, tuple) else value)
    assert tomllib.loads(CONFIG.to_toml())[section][key] == shown
    values = {"data": "x"}
    assign(values, [f"{section}.{key}={toml_value(value)}"])
    assert make_config(values) == CONFIG
    table = [line for line in tool().tables().splitlines() if f"`{key}`" in line]
    assert table
    if section in ("task", "optimizer", "training"):
        keyword = section if key == "name" else key
        found = inspect.signature(fit).parameters[keyword]
        assert (found.kind, found.default) == (inspect.Parameter.KEYWORD_ONLY, value)
        assert Training().changed(**{keyword: value}) == Training()


@pytest.mark.parametrize("kind", [k for k in SECTIONS.values() if not isinstance(k, Named)])
def test_every_field_is_an_option_of_its_section(kind):
    """What is declared is what the tests above iterate over."""
    table = CONFIG.training.tables()[kind.title()]
    assert {field.name for field in fields(kind)} <= set(table) <= {row[0] for row in kind.listed()}


def test_a_new_field_needs_no_other_line(monkeypatch):
    """Declared in a section, an option is in the file, in --set, in fit, a flag and in the docs."""

    @dataclass(frozen=True)
    class Longer(LoopOptions):
        fresh: int = option(3, integer(), "quite new", flag="--fresh")

    monkeypatch.setattr(declared, "LoopOptions", Longer)
    monkeypatch.setitem(SECTIONS, "training", Longer)
    config = make_config({"data": "x", "training": {"fresh": 4}})
    assert tomllib.loads(config.to_toml())["training"]["fresh"] == 4
    assert config.training.changed(fresh=5).loop.fresh == 5
    assert keywords_of_fit()["fresh"] == 3
    assert "| `fresh` | `3` | a whole number >= 1 | quite new |" in tool().tables()
    parser = argparse.ArgumentParser()
    train.arguments(parser)
    args = parser.parse_args(["x", "--fresh", "7", "--set", "training.epochs=2"])
    made = make_config(shared.values_of(args)).training.loop
    assert (made.fresh, made.epochs) == (7, 2)


def test_the_tables_of_the_docs_are_true():
    """``make tables`` writes them."""
    text = (HOME / "docs" / "training.md").read_text()
    assert text == tool().rewritten(text)
    old = text.replace("| 512 |", "| 256 |").replace("`512`", "`256`")
    assert tool().rewritten(old) == text != old


def test_every_option_of_every_name_is_in_the_docs():
    tables = tool().tables()
    keys = {key for kind in SAMPLERS.values() for key in kind().values()}
    keys |= {key for name in ESTIMATORS for key in make_estimator(name).values()}
    assert all(f"`{key}`" in tables for key in keys)


def test_flags_are_those_of_the_fields():
    wanted = [
        "--layers", "--widths", "--dropout", "--sampler", "--estimator", "--lr", "--epochs",
        "--steps", "--batch-size", "--seed",
    ]  # fmt: skip
    assert [flag.name for flag in flags()] == wanted
    said = subprocess.run(
        [sys.executable, "-m", "sgcn", "train", "--help"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert all(name in said for name in wanted)


def test_flags_are_read_without_anything_heavy():
    code = (
        "import sys; from sgcn.training.options import flags; list(flags())\n"
        "sys.exit(bool({'torch', 'numba', 'numpy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", PRESETS)
def test_presets_stand_in_for_defaults(name):
    """Every value is one of the table, unless it is given, and nothing else changes."""
    found = Training.of({"preset": name}).tables()
    wanted = Training.of({}).tables()
    for section, values in PRESETS[name].items():
        of = wanted[section] if "name" not in values else Training.of({section: values}).tables()
        wanted[section] = of.get(section, of) | values
    assert found == wanted != Training.of({}).tables()
    given = Training.of({"preset": name, "model": {"layer": "gin", "widths": 7}})
    assert given.model.values() == wanted["model"] | {"layer": "gin", "widths": 7}
    assert Training.of(given.tables()) == given  # what a run directory has needs no preset
    with pytest.raises(SgcnError, match=r"preset is 'gcnn', expected one of gcn, .*'gcn'"):
        Training.of({"preset": "gcnn"})


def test_a_preset_gives_way_to_another_sampler_or_optimiser():
    other = {"optimizer": {"name": "sgd"}, "sampler": {"name": "ladies"}}
    left, wanted = Training.of({"preset": "deep", **other}), Training.of(other)
    assert (left.optimizer, left.sampler) == (wanted.optimizer, wanted.sampler)
    assert left.model.layers == 6
    decayed = Training.of({"preset": "gcn", "optimizer": {"name": "adam"}})
    assert decayed.tables()["optimizer"]["weight_decay"] == 5e-4


# -- the value ------------------------------------------------------------------------------------


def test_there_and_back():
    odd = Training(
        sampler=make_sampler("ladies", sizes=(3, 4)),
        estimator=make_estimator("sgcn++", gap=np.int64(7), snapshot_nodes=0.5),
        optimizer=OptimizerOptions.of({"name": "sgd", "lr": 0.25, "momentum": 0.5, "clip": 3}),
        loop=LoopOptions(patience=2, batches_per_epoch=None, average=np.float32(0.5)),
    )
    assert odd.estimator_name == "sgcn++"
    assert Training.of(odd.tables()) == odd
    assert make_config(tomllib.loads(Config("x", odd).to_toml())).training == odd


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_without_a_name_gets_the_closest(name):
    assert Training(estimator=make_estimator(name)).estimator_name == name
    assert Training(estimator=make_estimator(name, gap=77)).tables()["estimator"]["gap"] == 77


def test_keywords_change_a_training():
    training = Training().changed(
        sampler="ladies", estimator="sgcn+", optimizer="sgd", momentum=0.5, epochs=3
    )
    assert training.sampler == make_sampler("ladies")
    assert (training.estimator, training.estimator_name) == (make_estimator("sgcn+"), "sgcn+")
    assert training.optimizer == OptimizerOptions.of({"name": "sgd", "momentum": 0.5})
    assert training.loop == LoopOptions(epochs=3)
    again = training.changed(optimizer=OptimizerOptions("adam"), lr=0.5)
    assert again.optimizer == OptimizerOptions("adam", 0.5)
    assert again.sampler == training.sampler


def test_another_course_of_the_learning_rate_leaves_the_options_of_the_first():
    first = Training.of({"optimizer": {"schedule": "step", "stair": 10, "clip": 2.0}})
    second = first.changed(schedule="cosine").optimizer
    assert second == OptimizerOptions.of({"schedule": "cosine", "clip": 2.0})


def test_what_is_no_graph_gets_the_way_to_one():
    data = SimpleNamespace(edge_index=1)
    way = r"a SimpleNamespace, expected a sgcn.Graph: Graph.from_pyg\(data\)"
    with pytest.raises(SgcnError, match=way):
        fit(small_model(), data)
    with pytest.raises(SgcnError, match=way):
        load(data)
    with pytest.raises(SgcnError, match=r"a str, .*: sgcn.data.load\('cora.npz', scale='auto'\)"):
        fit(small_model(), "cora.npz")
    with pytest.raises(SgcnError, match=r"data.load got a int, expected a name or a path"):
        load(3)


def test_fit_takes_a_training():
    training = Training(loop=LoopOptions(epochs=2, batch_size=8), sampler=make_sampler("labor"))
    graph = labelled()
    assert fit(small_model(), graph, training=training).steps == 2 * 4
    assert fit(small_model(), graph, training=training, epochs=3).steps == 3 * 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epoch": 3}, r"fit has no option 'epoch' \(did you mean 'epochs'\?\)$"),
        ({"widths": 3}, r"'widths', which belongs to the model: make_model\(.., widths=..\)"),
        ({"sizes": 3}, r"belongs to the sampler: sampler=make_sampler\(name, sizes=..\)"),
        ({"gap": 3}, r"belongs to the estimator: estimator=make_estimator\(name, gap=..\)"),
        ({"preset": "gcn"}, r"belongs to training=Training.of\(\{'preset': ..\}\)"),
        ({"zzz": 3}, "no option 'zzz', docs/training.md lists them all"),
        ({"probe_every": 3}, r"probe_every is 3, expected a probe for it"),
        ({"optimizer": "adam", "momentum": 0.5}, "'momentum' .it belongs to name = auto or"),
        ({"sampler": 3}, "sampler is 3, expected what make_sampler returns"),
        ({"estimator": 3}, "estimator is 3, expected what make_estimator returns"),
        ({"optimizer": 3}, "name is 3, expected one of auto, adam"),
        ({"optimizer": "lbfgs"}, "name is 'lbfgs', expected one of auto, adam"),
    ],
)
def test_what_fit_refuses(options, words):
    with pytest.raises(SgcnError, match=words):
        fit(small_model(), labelled(), **options)


def test_options_of_a_layer_stand_beside_those_of_the_model():
    made = ModelOptions.of({"layer": "attention", "heads": 2, "layers": 3})
    assert made.layer == nn.LAYERS["attention"](heads=2)
    assert made.values()["heads"] == 2
    assert ModelOptions.of(made.values()) == made
    assert ModelOptions(layer="attention").values()["heads"] == 4
    assert "heads" not in ModelOptions().values()
    assert any(row[0] == "heads" for row in ModelOptions.listed())
    assert "`heads`" in tool().tables()
    with pytest.raises(SgcnError, match=r"no option 'heads' \(it belongs to layer = attention\)"):
        ModelOptions.of({"layer": "mean", "heads": 4})
    with pytest.raises(SgcnError, match="heads is 0"):
        ModelOptions.of({"layer": "attention", "heads": 0})
    assert replace(made, layers=2).values()["heads"] == 2


def test_a_new_layer_brings_its_options(monkeypatch):
    @dataclass(frozen=True)
    class Many(nn.LayerKind):
        paths: int = option(1, integer(), "parallel paths")

    monkeypatch.setitem(nn.LAYERS, "many", Many)
    assert ModelOptions.of({"layer": "many", "paths": 4}).layer == Many(4)
    assert "`paths`" in tool().tables()


def test_heads_come_from_the_file_and_from_the_command_line(tmp_path):
    data, file = tmp_path / "graph", tmp_path / "heads.toml"
    labelled().save(data)
    file.write_text('[model]\nlayer = "attention"\nheads = 2\nwidths = 8\n')
    parser = argparse.ArgumentParser()
    train.arguments(parser)
    for more, heads in (([], 2), (["--set", "model.heads=8"], 8)):
        args = parser.parse_args([str(data), "--config", str(file), *more])
        config, _, model = prepare(make_config(shared.values_of(args)))
        assert [layer.heads for layer in model.layers] == [heads, heads]
        assert f"heads = {heads}\n" in config.to_toml()
        assert make_config(tomllib.loads(config.to_toml())) == config

"""Options: one place that checks, one style of message."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from sgcn import SAMPLERS, SgcnError, Training, make_model, make_sampler
from sgcn.data.synthetic import Synthetic, synthetic


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_option_is_described_and_its_default_is_sound(name):
    sampler = make_sampler(name)
    assert sampler == SAMPLERS[name]()
    assert sampler.summary
    for option, default, words, help in sampler.described():
        assert getattr(sampler, option) == default
        assert words
        assert help


@pytest.mark.parametrize(
    ("name", "option", "value", "expected"),
    [
        ("neighbor", "sizes", 0, "a whole number >= 1, or one such number a layer"),
        ("neighbor", "sizes", (), "a whole number >= 1, or one such number a layer"),
        ("neighbor", "sizes", (5, 0), "a whole number >= 1, or one such number a layer"),
        ("neighbor", "sizes", 2.0, "a whole number >= 1, or one such number a layer"),
        ("neighbor", "sizes", True, "a whole number >= 1, or one such number a layer"),
        ("neighbor", "sizes", "5", "a whole number >= 1, or one such number a layer"),
        ("ladies", "weighting", "none", "one of unbiased, hajek, row"),
        ("ladies", "weighting", None, "one of unbiased, hajek, row"),
        ("fastgcn", "keep_destinations", 1, "true or false"),
        ("saint", "variant", "tree", "one of node, edge, walk"),
        ("saint", "size", -3, "a whole number >= 1"),
        ("saint", "walk_length", 0, "a whole number >= 1"),
        ("cluster", "parts", 0, "a whole number >= 1"),
        ("cluster", "rescale_between", "yes", "true or false"),
    ],
)
def test_a_bad_value_gets_one_sentence(name, option, value, expected):
    with pytest.raises(SgcnError) as error:
        make_sampler(name, **{option: value})
    assert str(error.value) == f"{name}: {option} is {value!r}, expected {expected}"


def test_unknown_names_get_the_nearest_known_one():
    with pytest.raises(SgcnError, match=r"^sampler is 'ladys', expected one of exact, .*'ladies'"):
        make_sampler("ladys")
    with pytest.raises(SgcnError, match=r"^labor has no option 'size', .*did you mean 'sizes'"):
        make_sampler("labor", size=3)
    with pytest.raises(SgcnError, match=r"^exact has no option 'sizes', expected one of none$"):
        make_sampler("exact", sizes=3)


def test_lists_become_tuples_and_numpy_numbers_pass():
    assert make_sampler("neighbor", sizes=[5, 3]).sizes == (5, 3)
    for given in (np.int64(5), np.array(5), [np.int32(5), 3]):
        sizes = make_sampler("neighbor", sizes=given).sizes
        assert json.loads(json.dumps(sizes)) == (5 if np.ndim(given) == 0 else [5, 3])
    changed = Training().changed(lr=np.float32(0.5), batch_size=np.int64(8))
    assert (type(changed.optimizer.lr), type(changed.loop.batch_size)) == (float, int)
    assert changed == Training().changed(lr=0.5, batch_size=8)
    spec = {"nodes": 200, "degree": 4, "classes": 3, "communities": 4}
    whole = Synthetic(**{name: np.int64(value) for name, value in spec.items()})
    assert synthetic(whole, np.int64(2)).y.tolist() == synthetic(Synthetic(**spec), 2).y.tolist()
    assert [
        p.shape for p in make_model(4, 3, widths=np.int64(8), layers=np.int64(3)).parameters()
    ] == [p.shape for p in make_model(4, 3, widths=np.array([8, 8, 8])).parameters()]


def test_samplers_are_frozen_values():
    sampler = make_sampler("ladies")
    with pytest.raises(dataclasses.FrozenInstanceError):
        sampler.sizes = 3
    assert sampler == make_sampler("ladies")
    assert hash(sampler) == hash(make_sampler("ladies"))
    assert sampler != make_sampler("ladies", sizes=3)

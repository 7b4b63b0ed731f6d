"""The colours of the page: enough contrast, and apart for colour-blind eyes."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import sgcn.report

STYLE = (Path(sgcn.report.__file__).parent / "web" / "style.css").read_text()
COLOURS = {
    name: pair for name, *pair in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", STYLE)
}
RUNS = [name for name in COLOURS if name.startswith("run-")]

#: What eyes without one kind of cone see, in linear RGB (Machado, Oliveira and Fernandes, 2009).
SIGHT = {
    "all": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                   [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
#: Linear RGB to OKLab, in which distances are what eyes see.
CONES = [[0.41222147, 0.53633254, 0.05144599], [0.21190350, 0.68069955, 0.10739696],
         [0.08830246, 0.28171884, 0.62997870]]  # fmt: skip
LAB = [[0.21045426, 0.79361779, -0.00407205], [1.97799850, -2.42859221, 0.45059371],
       [0.02590404, 0.78277177, -0.80867577]]  # fmt: skip


def linear(colour: str) -> np.ndarray:
    values = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    dark, light = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other))
    return (light + 0.05) / (dark + 0.05)


def seen(colour: str, sight: str) -> np.ndarray:
    rgb = np.clip(np.array(SIGHT[sight]) @ linear(colour), 0, 1)
    return np.array(LAB) @ np.cbrt(np.array(CONES) @ rgb)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_contrast(theme):
    of = {name: pair[theme] for name, pair in COLOURS.items()}
    pairs = [("ink", "page"), ("ink", "card"), ("ink", "mark"), ("quiet", "page"),
             ("quiet", "card"), ("accent", "page"), ("on-accent", "accent")]  # fmt: skip
    for text, ground in pairs:
        assert contrast(of[text], of[ground]) >= 4.5, (text, ground)
    for name in RUNS:
        assert contrast(of[name], of["card"]) >= 3, name


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("sight", SIGHT)
def test_runs_can_be_told_apart(theme, sight):
    assert len(RUNS) == 6
    for one, other in combinations(RUNS, 2):
        colours = (COLOURS[name][theme] for name in (one, other))
        apart = np.linalg.norm(np.subtract(*(seen(colour, sight) for colour in colours)))
        assert apart >= 0.1, (one, other, apart)

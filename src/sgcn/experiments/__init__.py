"""The tables and figures of the paper.

    plan and data -> cases -> runs (cached) -> numbers and curves -> CSV, JSON, Markdown, figure

A new experiment is an `Experiment` in `EXPERIMENTS` of `catalogue.py`.
"""

from __future__ import annotations

from sgcn.experiments.catalogue import EXPERIMENTS

__all__ = ["EXPERIMENTS"]

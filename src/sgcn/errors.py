"""Errors that users are meant to read; those that code must tell apart have a type."""

from __future__ import annotations


class SgcnError(ValueError):
    """Bad input: says in one sentence what came, what was expected and what to do.

    The command line prints it without a traceback and ends with exit code 2.
    """


class TrainingDiverged(SgcnError):
    """Weights, losses or outputs are no longer finite: the steps are too large."""

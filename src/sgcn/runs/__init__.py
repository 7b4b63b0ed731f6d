"""Runs: their configuration, their directories and their curves."""

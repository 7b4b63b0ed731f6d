"""Runs of `sgcn train`: their configuration, their directory and their curves."""

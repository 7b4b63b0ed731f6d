"""Graphs on disk and graphs made to measure."""

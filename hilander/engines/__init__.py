"""Engines: where the work of a stage runs."""

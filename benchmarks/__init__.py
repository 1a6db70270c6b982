"""Measurements: one JSONL row a run, tables rendered from rows."""

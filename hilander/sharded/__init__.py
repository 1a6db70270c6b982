"""Runs over sets that no process holds: every stage is tasks of an engine."""

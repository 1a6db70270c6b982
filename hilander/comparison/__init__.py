"""Comparing methods on a pair of labelled sets: tuned on one, scored on the other."""

"""Comparison of clustering methods: tuned on a training set, scored on a test set."""

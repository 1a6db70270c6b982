"""Decoding: from edge scores to one parent for each node."""

"""Embeddings: validation, preparation, labels, equal rows, the dominant identity."""

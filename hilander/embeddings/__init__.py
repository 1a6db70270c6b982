"""Embeddings: validated, normalised, centred, mapped; labels; rows that are equal."""

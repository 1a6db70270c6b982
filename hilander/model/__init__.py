"""torch lives here: encoder, heads, losses, training loop, weights on disk."""

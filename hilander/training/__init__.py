"""A labelled set in, a trained model out."""

"""Probability that an edge joins one identity: LANDER, and classifiers of edge features."""

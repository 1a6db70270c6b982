"""The default method: edge features, and classifiers of edges."""

"""The default method: edge features and their classifiers."""

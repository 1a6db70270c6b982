"""How likely an edge joins one identity: the paper's network, and edge features."""

"""Values: the k-NN graph, its nodes, edge scores, and links between clusters."""

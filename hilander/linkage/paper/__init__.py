"""LANDER, the published network: linkage and density from raw embeddings."""

"""Pictures and text to embeddings: embedders, readers of files, the cache and the pipeline."""

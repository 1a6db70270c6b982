"""Reading and writing of files and folders."""

from hilander.io.files import EmbeddingFile, read_embeddings, read_labels, write_table
from hilander.io.pickles import read_pickle_arrays

__all__ = ["EmbeddingFile", "read_embeddings", "read_labels", "read_pickle_arrays", "write_table"]

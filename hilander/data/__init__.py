"""Embeddings in: validate, normalise, centre, read and write files, make sample sets."""

from hilander.data.arrays import BoolArray, FloatArray, IntArray
from hilander.data.embeddings import as_embeddings, has_names
from hilander.data.files import EmbeddingFile, read_embeddings, read_labels, write_table
from hilander.data.labels import check_trainable, encode_known, encode_labels
from hilander.data.pickles import read_pickle_arrays
from hilander.data.preparation import (
    OwnPreparation,
    Preparation,
    check_varied,
    learn_preparation,
    mean_pair_cosine,
)
from hilander.data.samples import make_identities
from hilander.data.writing import (
    check_folder_kind,
    check_output_folder,
    claim_folder,
    folder_writer,
    read_json,
    write_atomically,
    write_json,
)

__all__ = [
    "BoolArray",
    "EmbeddingFile",
    "FloatArray",
    "IntArray",
    "OwnPreparation",
    "Preparation",
    "as_embeddings",
    "check_folder_kind",
    "check_output_folder",
    "check_trainable",
    "check_varied",
    "claim_folder",
    "encode_known",
    "encode_labels",
    "folder_writer",
    "has_names",
    "learn_preparation",
    "make_identities",
    "mean_pair_cosine",
    "read_embeddings",
    "read_json",
    "read_labels",
    "read_pickle_arrays",
    "write_atomically",
    "write_json",
    "write_table",
]

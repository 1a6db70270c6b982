"""The embedder of sentence-transformers, with a tiny model of random weights made on the spot."""

import sys
import types

import numpy as np
import pytest
import torch
from torch import nn

from hilander.embedders.protocol import EmbedderSettings
from hilander.embedders.registry import make_embedder
from hilander.errors import SettingError

CPU = EmbedderSettings(device="cpu")


class StandIn(nn.Module):
    """A sentence is the sum of random vectors of its letters."""

    def __init__(self, name, device, local_files_only):
        super().__init__()
        if name != "tiny":
            raise OSError(f"{name} is not here, local_files_only={local_files_only}")
        generator = torch.Generator().manual_seed(0)
        self.letters = nn.Embedding.from_pretrained(torch.randn(256, 4, generator=generator))

    def encode(self, texts, batch_size, show_progress_bar, convert_to_numpy):
        rows = [self.letters(torch.tensor(list(text.encode()))).sum(dim=0) for text in texts]
        return torch.stack(rows).numpy()


@pytest.fixture
def library(monkeypatch):
    made = types.ModuleType("sentence_transformers")
    made.SentenceTransformer = StandIn
    monkeypatch.setitem(sys.modules, "sentence_transformers", made)
    return made


def test_a_stand_in_is_used_as_the_library_is(library):
    embedder = make_embedder("sentence-transformers:tiny", CPU)
    assert (embedder.kind, embedder.dim) == ("text", 4)
    features = embedder.embed(["ab", "ba", "c"])
    assert np.allclose(features[0], features[1])
    assert not np.allclose(features[0], features[2])


def test_nothing_is_fetched_unless_it_is_asked_for(library):
    with pytest.raises(SettingError, match="not on this machine; --download fetches it"):
        make_embedder("sentence-transformers:other", CPU)


@pytest.mark.slow
def test_a_model_of_the_library_itself_is_loaded_from_its_folder(tmp_path):
    library = pytest.importorskip(
        "sentence_transformers", reason="sentence-transformers is not installed"
    )
    transformers = pytest.importorskip("transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    tokenizer = transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"))
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(tmp_path / "bert")
    tokenizer.save_pretrained(tmp_path / "bert")
    library.SentenceTransformer(str(tmp_path / "bert"), device="cpu").save(str(tmp_path / "model"))
    embedder = make_embedder(f"sentence-transformers:{tmp_path / 'model'}", CPU)
    features = embedder.embed(["a b", "c d e", "a b"])
    assert features.shape == (3, 8)
    assert np.allclose(features[0], features[2], atol=1e-6)

"""The embedder ``sentence-transformers:NAME``: a model of texts of that library, or of a folder.

Without ``--download`` the model comes from the folder where the library keeps what it has fetched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilander.arrays.rows import FloatArray
from hilander.embedders.network_input import digest_network
from hilander.embedders.offline import offline_unless
from hilander.embedders.protocol import EmbedderSettings, Kind
from hilander.embedders.registry import import_library
from hilander.errors import ModelError, SettingError
from hilander.learning.device import choose_device

_NEEDS = "pip install -c constraints.txt sentence-transformers"


class SentenceEmbedder:
    """One embedding for each text.

    Parameters
    ----------
    name : str
    model : SentenceTransformer
    """

    kind: Kind = "text"

    def __init__(self, name: str, model: Any) -> None:
        self.name = f"sentence-transformers:{name}"
        self.version = digest_network(model)
        self._model = model
        self.dim = int(self.embed(["a"]).shape[1])

    def embed(self, batch: Sequence[str]) -> FloatArray:
        """Embed texts."""
        found = self._model.encode(
            list(batch), batch_size=len(batch), show_progress_bar=False, convert_to_numpy=True
        )
        return np.asarray(found, dtype=np.float32)


def make_embedder(argument: str | None, settings: EmbedderSettings) -> SentenceEmbedder:
    """Load the model by its name or folder."""
    name = argument or ""
    library = import_library("sentence_transformers", "sentence-transformers", _NEEDS)
    device = str(choose_device(settings.device))
    try:
        with offline_unless(settings.download):
            model = library.SentenceTransformer(
                name, device=device, local_files_only=not settings.download
            )
    except Exception as error:  # the libraries below raise many types
        if settings.download:
            raise ModelError(
                f"sentence-transformers cannot load {name!r} ({error}); check the name"
            ) from error
        raise SettingError(
            f"the model sentence-transformers:{name} is not on this machine; --download fetches it"
        ) from error
    return SentenceEmbedder(name, model)

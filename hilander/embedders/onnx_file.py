"""The embedder ``onnx:FILE``: a model of pictures or of texts in an ONNX file.

A model with one input of shape (n, 3, height, width) or (n, height, width, 3) takes pictures. One
with an input of strings, or with ``input_ids`` and the like, takes texts; for the latter
``tokenizer.json`` must be next to the file. What the file does not say, the user must: a wrong
normalisation gives embeddings that look right and are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray
from hilander.embedders.onnx_input import PictureInput, read_picture_input
from hilander.embedders.protocol import Embedder, EmbedderSettings, Kind
from hilander.embedders.registry import import_library
from hilander.embedders.resizing import MiddleSquare
from hilander.embedders.versions import digest_weights
from hilander.errors import ModelError, SettingError

TOKENIZER_FILE = "tokenizer.json"
_NEEDS = "pip install 'hilander[onnx]'"
_TOKEN_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_MOST_TOKENS = 512


class OnnxPictures:
    """A model of pictures.

    Parameters
    ----------
    path : Path
    session : onnxruntime.InferenceSession
    given : PictureInput
    output : str
    """

    kind: Kind = "picture"

    def __init__(self, path: Path, session: Any, given: PictureInput, output: str) -> None:
        self.name = f"onnx:{path.name}"
        self.version = f"{digest_weights(path)} {output} {given}"
        self.prepare = MiddleSquare(given.width, given.height)
        self._session, self._given, self._output = session, given, output
        blank = np.zeros((given.height, given.width, 3), np.uint8)
        self.dim = _find_dim(path, output, self._run([blank]))

    def embed(self, batch: Sequence[npt.NDArray[np.uint8]]) -> FloatArray:
        """Embed pixels of shape (height, width, 3)."""
        if self._given.batch is None:
            return self._run(batch)
        # A model with a fixed batch, such as 1.
        step = self._given.batch
        parts = []
        for start in range(0, len(batch), step):
            part = list(batch[start : start + step])
            filled = part + [part[-1]] * (step - len(part))
            parts.append(self._run(filled)[: len(part)])
        return np.concatenate(parts)

    def _run(self, batch: Sequence[npt.NDArray[np.uint8]]) -> FloatArray:
        if self._given.batch is not None and len(batch) < self._given.batch:
            batch = [*batch, *[batch[-1]] * (self._given.batch - len(batch))]
        values = self._given.convert(np.stack(batch))
        found = self._session.run([self._output], {self._given.name: values})[0]
        return _flatten(np.asarray(found, dtype=np.float32))


class OnnxTexts:
    """A model of texts.

    Parameters
    ----------
    path : Path
    session : onnxruntime.InferenceSession
    output : str
    """

    kind: Kind = "text"

    def __init__(self, path: Path, session: Any, output: str) -> None:
        self.name = f"onnx:{path.name}"
        self._session, self._output = session, output
        self._inputs = [one.name for one in session.get_inputs()]
        self._takes_strings = session.get_inputs()[0].type == "tensor(string)"
        self._tokenizer = None if self._takes_strings else _read_tokenizer(path)
        own = "" if self._takes_strings else digest_weights(path.with_name(TOKENIZER_FILE))
        self.version = f"{digest_weights(path)} {own} {output}"
        self.dim = _find_dim(path, output, self.embed(["a"]))

    def embed(self, batch: Sequence[str]) -> FloatArray:
        """Embed texts. The vectors of tokens, if the model gives them, are averaged."""
        if self._tokenizer is None:
            texts = np.array(list(batch), dtype=object)
            return self._run({self._inputs[0]: texts})
        tokens = self._tokenizer.encode_batch(list(batch))
        columns = {
            "input_ids": [one.ids for one in tokens],
            "attention_mask": [one.attention_mask for one in tokens],
            "token_type_ids": [one.type_ids for one in tokens],
        }
        given = {name: np.array(columns[name], np.int64) for name in self._inputs}
        return self._run(given, np.array(columns["attention_mask"], np.float32))

    def _run(self, given: dict[str, Any], mask: FloatArray | None = None) -> FloatArray:
        found = np.asarray(self._session.run([self._output], given)[0], dtype=np.float32)
        if found.ndim == 3 and mask is not None:  # (n, n_tokens, dim)
            total = (found * mask[:, :, None]).sum(axis=1)
            averaged: FloatArray = total / np.maximum(mask.sum(axis=1, keepdims=True), 1)
            return averaged
        return _flatten(found)


def make_embedder(argument: str | None, settings: EmbedderSettings) -> Embedder:
    """Open the file and see what it takes."""
    path = Path(argument or "")
    if not path.is_file():
        raise SettingError(f"onnx:{path} does not exist, expected an ONNX file; check the path")
    session = _open(path, settings)
    output = _choose_output(path, session, settings.output)
    inputs = session.get_inputs()
    names = [one.name for one in inputs]
    if inputs[0].type == "tensor(string)" or "input_ids" in names:
        unknown = [name for name in names if name not in _TOKEN_INPUTS]
        if unknown and inputs[0].type != "tensor(string)":
            raise ModelError(
                f"{path} has the inputs {', '.join(names)}, expected at most "
                f"{', '.join(_TOKEN_INPUTS)} for texts; export the text side of the model alone"
            )
        return OnnxTexts(path, session, output)
    return OnnxPictures(path, session, read_picture_input(path, session, settings), output)


def _open(path: Path, settings: EmbedderSettings) -> Any:
    runtime = import_library("onnxruntime", "onnx", _NEEDS)
    available = runtime.get_available_providers()
    chosen = ["CPUExecutionProvider"]
    if settings.device.startswith("cuda") or (
        settings.device == "auto" and "CUDAExecutionProvider" in available
    ):
        chosen.insert(0, "CUDAExecutionProvider")
    try:
        return runtime.InferenceSession(str(path), providers=chosen)
    except Exception as error:  # onnxruntime has its own tree of errors, not of Python's
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelError(
            f"{path} cannot be opened by onnxruntime ({reason}), expected an ONNX model; export "
            "it again"
        ) from error


def _choose_output(path: Path, session: Any, asked: str | None) -> str:
    """The output that the user names, or the first one."""
    names = [one.name for one in session.get_outputs()]
    if asked is None:
        preferred = ("sentence_embedding", "image_embeds", "text_embeds", "embedding")
        return next((name for name in preferred if name in names), names[0])
    if asked not in names:
        raise SettingError(
            f"{path} has no output {asked!r}, it has {', '.join(names)}; name one of these"
        )
    return asked


def _flatten(found: FloatArray) -> FloatArray:
    """Give (n, dim): maps of features (n, dim, height, width) are averaged over the picture."""
    if found.ndim == 4:
        averaged: FloatArray = found.mean(axis=(2, 3))
        return averaged
    return found


def _find_dim(path: Path, output: str, found: FloatArray) -> int:
    if found.ndim != 2 or not found.shape[1]:
        raise ModelError(
            f"{path} gives output {output!r} of shape {found.shape}, expected one vector for each "
            "item; name another output with --model-output"
        )
    return int(found.shape[1])


def _read_tokenizer(path: Path) -> Any:
    source = path.with_name(TOKENIZER_FILE)
    if not source.is_file():
        raise SettingError(
            f"{path} takes tokens, and {source} does not exist; put the {TOKENIZER_FILE} of the "
            "model next to it"
        )
    library = import_library("tokenizers", "onnx", _NEEDS)
    try:
        tokenizer = library.Tokenizer.from_file(str(source))
    except Exception as error:  # tokenizers raises plain Exception
        raise ModelError(f"{source} cannot be read ({error}); export it again") from error
    if tokenizer.truncation is None:
        tokenizer.enable_truncation(_MOST_TOKENS)
    if tokenizer.padding is None:
        tokenizer.enable_padding()
    return tokenizer

"""ONNX models, made on the spot."""

import json

import numpy as np
import pytest

from hilander.embedders.protocol import EmbedderSettings
from hilander.embedders.registry import make_embedder
from hilander.errors import ModelError, SettingError

onnx = pytest.importorskip("onnx", reason="onnx, which makes the models of this test, is missing")
pytest.importorskip("onnxruntime", reason="the extra hilander[onnx] is not installed")
TensorProto, helper, numpy_helper = onnx.TensorProto, onnx.helper, onnx.numpy_helper

HALF = (0.5, 0.5, 0.5)


def save(path, nodes, inputs, outputs, weights=(), metadata=None):
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(model, metadata or {})
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    return path


def picture_model(path, shape=("n", 3, 8, 8), kind=TensorProto.FLOAT, metadata=None):
    """The mean of each channel, twice: as vectors, and as maps of one pixel."""
    axes = [2, 3] if shape[1] == 3 else [1, 2]
    nodes = []
    source = "pixels"
    if kind != TensorProto.FLOAT:
        nodes.append(helper.make_node("Cast", ["pixels"], ["floats"], to=TensorProto.FLOAT))
        source = "floats"
    nodes.append(helper.make_node("ReduceMean", [source], ["vector"], axes=axes, keepdims=0))
    nodes.append(helper.make_node("ReduceMean", [source], ["maps"], axes=axes, keepdims=1))
    nodes.append(helper.make_node("ReduceMean", [source], ["number"], axes=[1, 2, 3], keepdims=0))
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        for name in ("vector", "maps", "number")
    ]
    inputs = [helper.make_tensor_value_info("pixels", kind, shape)]
    return save(path, nodes, inputs, outputs, metadata=metadata)


def text_model(path, n_tokens=30, dim=5):
    """A vector for each token, as a transformer gives."""
    table = np.random.default_rng(0).normal(size=(n_tokens, dim)).astype(np.float32)
    names = ("input_ids", "attention_mask")
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, ("n", "t")) for n in names]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ("n", "t", dim))
    node = helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])
    save(path, [node], inputs, [output], [numpy_helper.from_array(table, "table")])
    return table


def open_model(path, **settings):
    return make_embedder(f"onnx:{path}", EmbedderSettings(device="cpu", **settings))


def colours(*values, side=8):
    return [np.full((side, side, 3), value, np.uint8) for value in values]


def test_a_model_of_pictures_gets_normalised_pixels(tmp_path):
    embedder = open_model(picture_model(tmp_path / "m.onnx"), mean=HALF, std=(0.5, 0.25, 1.0))
    assert (embedder.kind, embedder.dim, embedder.name) == ("picture", 3, "onnx:m.onnx")
    assert (embedder.prepare.width, embedder.prepare.height) == (8, 8)
    features = embedder.embed(colours((255, 0, 51), (0, 255, 255)))
    assert np.allclose(features, [[1, -2, -0.3], [-1, 2, 0.5]], atol=1e-6)


def test_a_model_with_channels_last_and_8_bits_needs_no_normalisation(tmp_path):
    path = picture_model(tmp_path / "m.onnx", ("n", 8, 8, 3), TensorProto.UINT8)
    assert open_model(path).embed(colours((1, 2, 3))).tolist() == [[1, 2, 3]]


def test_a_model_with_a_batch_of_fixed_size_gets_full_batches(tmp_path):
    path = picture_model(tmp_path / "m.onnx", (2, 3, 8, 8))
    embedder = open_model(path, mean=(0, 0, 0), std=(1, 1, 1))
    reds = [0, 51, 102, 153, 204]
    features = embedder.embed(colours(*((red, 0, 0) for red in reds)))
    assert np.allclose(features[:, 0], np.array(reds) / 255)


def test_maps_of_features_are_averaged(tmp_path):
    path = picture_model(tmp_path / "m.onnx", ("n", 8, 8, 3), TensorProto.UINT8)
    assert open_model(path, output="maps").dim in (1, 3)


@pytest.mark.parametrize("missing", ["mean", "std"])
def test_an_unknown_normalisation_is_an_error_that_gives_examples(tmp_path, missing):
    given = {"mean": HALF, "std": HALF} | {missing: None}
    with pytest.raises(SettingError, match=r"does not say how its input is normalised.*ImageNet"):
        open_model(picture_model(tmp_path / "m.onnx"), **given)


def test_the_normalisation_comes_from_the_metadata_of_the_model(tmp_path):
    metadata = {"mean": "[0, 0, 0]", "std": "[1, 1, 1]", "size": "16"}
    path = picture_model(tmp_path / "m.onnx", ("n", 3, "h", "w"), metadata=metadata)
    embedder = open_model(path)
    assert embedder.prepare.width == 16
    assert np.allclose(embedder.embed(colours((255, 0, 0), side=16)), [[1, 0, 0]])


def test_the_normalisation_comes_from_the_file_beside_the_model(tmp_path):
    config = {"image_mean": [0, 0, 0], "image_std": [1, 1, 1], "crop_size": {"height": 12}}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
    path = picture_model(tmp_path / "m.onnx", ("n", 3, "h", "w"))
    assert open_model(path).prepare.height == 12
    assert open_model(path).version != open_model(path, mean=HALF).version


def test_damaged_metadata_is_an_error(tmp_path):
    path = picture_model(tmp_path / "m.onnx", metadata={"mean": "[1, 2]"})
    with pytest.raises(ModelError, match="metadata of its input that cannot be read"):
        open_model(path)


def test_a_model_of_any_size_needs_one_and_a_fixed_one_refuses_another(tmp_path):
    free = picture_model(tmp_path / "free.onnx", ("n", 3, "h", "w"))
    with pytest.raises(SettingError, match="give --pixels"):
        open_model(free, mean=HALF, std=HALF)
    assert open_model(free, mean=HALF, std=HALF, pixels=20).prepare.width == 20
    with pytest.raises(SettingError, match="takes pictures of height 8, got --pixels 9"):
        open_model(picture_model(tmp_path / "m.onnx"), mean=HALF, std=HALF, pixels=9)


def test_another_output_can_be_named(tmp_path):
    path = picture_model(tmp_path / "m.onnx")
    with pytest.raises(SettingError, match="no output 'x', it has vector, maps, number"):
        open_model(path, mean=HALF, std=HALF, output="x")
    with pytest.raises(ModelError, match="expected one vector for each item"):
        open_model(path, mean=HALF, std=HALF, output="number")


def test_what_is_no_model_is_an_error(tmp_path):
    with pytest.raises(SettingError, match="does not exist, expected an ONNX file"):
        open_model(tmp_path / "none.onnx")
    (tmp_path / "bad.onnx").write_bytes(b"not a model")
    with pytest.raises(ModelError, match="cannot be opened by onnxruntime"):
        open_model(tmp_path / "bad.onnx")


def test_a_model_of_something_else_is_refused(tmp_path):
    node = helper.make_node("Identity", ["x"], ["y"])
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ("n", 7)) for name in "xy"]
    path = save(tmp_path / "m.onnx", [node], values[:1], values[1:])
    with pytest.raises(ModelError, match=r"has the inputs x \['n', 7\], expected one of shape"):
        open_model(path)


@pytest.fixture
def tokenizer(tmp_path):
    """Words by white space, numbered from 1."""
    library = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    words = {word: n for n, word in enumerate(["[PAD]", "[UNK]", "red", "green", "blue"])}
    made = library.Tokenizer(library.models.WordLevel(words, unk_token="[UNK]"))
    made.pre_tokenizer = library.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    return words


def test_a_model_of_texts_averages_the_vectors_of_the_tokens_and_not_of_the_filling(
    tmp_path, tokenizer
):
    table = text_model(tmp_path / "m.onnx")
    embedder = open_model(tmp_path / "m.onnx")
    assert (embedder.kind, embedder.dim) == ("text", 5)
    features = embedder.embed(["red blue", "green green green red", "blue"])
    assert np.allclose(features[0], table[[2, 4]].mean(axis=0), atol=1e-6)
    assert np.allclose(features[2], table[4], atol=1e-6)


def test_a_model_of_texts_without_its_tokenizer_says_what_is_missing(tmp_path):
    text_model(tmp_path / "m.onnx")
    with pytest.raises(SettingError, match=r"takes tokens, and .*tokenizer.json does not exist"):
        open_model(tmp_path / "m.onnx")

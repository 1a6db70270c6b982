"""The embedder ``faces``: dlib's detector and network, with the weights of hilander[faces]."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from hilander.embedders.faces.alignment import DEFAULT_SCORE, FaceAlignment
from hilander.embedders.faces.dlib_weights import read_dlib_weights
from hilander.embedders.faces.network import DIM, FaceNetwork
from hilander.embedders.network_input import PictureNetwork
from hilander.embedders.protocol import EmbedderSettings, Kind
from hilander.errors import SettingError

_WEIGHTS = "dlib_face_recognition_resnet_model_v1.dat"
_LANDMARKS = "shape_predictor_5_face_landmarks.dat"
# Changes if the same picture would give other faces or numbers.
_VERSION = "resnet-v1-1"


class FaceEmbedder:
    """One embedding for each face.

    Parameters
    ----------
    network : PictureNetwork
    alignment : FaceAlignment
    """

    name = "faces"
    kind: Kind = "face"
    dim = DIM

    def __init__(self, network: PictureNetwork, alignment: FaceAlignment) -> None:
        self.prepare = alignment
        self.version = f"{_VERSION} score>={alignment.score:g}"
        self.embed = network.embed


def make_embedder(_: str | None, settings: EmbedderSettings) -> FaceEmbedder:
    """Read the weights and make the embedder."""
    folder = find_models()
    network = FaceNetwork(read_dlib_weights(folder / _WEIGHTS))
    score = DEFAULT_SCORE if settings.face_score is None else settings.face_score
    return FaceEmbedder(
        PictureNetwork(network, None, settings.device), FaceAlignment(folder / _LANDMARKS, score)
    )


def find_models() -> Path:
    """Folder of dlib's models in the installed package."""
    # The package itself is not imported: it needs pkg_resources, which setuptools has removed.
    spec = find_spec("face_recognition_models")
    for name, found in (("face_recognition_models", spec), ("dlib", find_spec("dlib"))):
        if found is None:
            raise SettingError(f"embedder 'faces' needs {name}: pip install 'hilander[faces]'")
    if spec is None or spec.origin is None:
        raise SettingError("face_recognition_models is damaged; install it again")
    return Path(spec.origin).parent / "models"

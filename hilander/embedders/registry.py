"""Embedders by name. Each is an entry point of the group ``hilander.embedders``.

A package adds an embedder in its ``pyproject.toml``::

    [project.entry-points."hilander.embedders"]
    mine = "my_package.module:make_embedder"

``make_embedder(argument, settings)`` gets what follows the colon in ``mine:argument``, or None, and
an `EmbedderSettings`. It gives an `Embedder`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType

from hilander.embedders.protocol import KINDS, Embedder, EmbedderSettings, PictureEmbedder
from hilander.errors import SettingError, check_choice

GROUP = "hilander.embedders"
Factory = Callable[[str | None, EmbedderSettings], Embedder]


@dataclass(frozen=True)
class BuiltIn:
    """An embedder of this package.

    Attributes
    ----------
    factory : str
        Module and function, as in an entry point.
    argument : str
        What follows the colon; empty for none.
    needs : str
        How to get what it needs.
    meaning : str
    """

    factory: str
    argument: str
    needs: str
    meaning: str


# Listed in pyproject.toml too, as entry points; a test compares. A source tree that is not
# installed has no entry points and uses these.
BUILT_IN: dict[str, BuiltIn] = {
    "objects": BuiltIn(
        "hilander.embedders.objects.embedder:make_embedder",
        "",
        "hilander[objects]",
        "objects and scenes: EfficientNet-Lite0, 1280 numbers a picture",
    ),
    "faces": BuiltIn(
        "hilander.embedders.faces.embedder:make_embedder",
        "",
        "hilander[faces]",
        "every face of a picture: dlib's detector and network, 128 numbers a face",
    ),
    "ngrams": BuiltIn(
        "hilander.embedders.ngrams:make_embedder",
        "",
        "nothing",
        "texts without a model: letters, not meaning; weak",
    ),
    "onnx": BuiltIn(
        "hilander.embedders.onnx_file:make_embedder",
        "FILE",
        "hilander[onnx]",
        "a model of pictures or texts in an ONNX file",
    ),
    "timm": BuiltIn(
        "hilander.embedders.timm_model:make_embedder",
        "NAME",
        "the library timm",
        "a model of pictures of timm",
    ),
    "openclip": BuiltIn(
        "hilander.embedders.openclip:make_embedder",
        "NAME",
        "the library open_clip_torch",
        "the picture side of a CLIP model of OpenCLIP; NAME/WEIGHTS names its weights",
    ),
    "sentence-transformers": BuiltIn(
        "hilander.embedders.sentences:make_embedder",
        "NAME",
        "the library sentence-transformers",
        "a model of texts of sentence-transformers, by name or folder",
    ),
}


def find_embedders() -> dict[str, EntryPoint]:
    """Every embedder that is installed, by name. Those of this package come first."""
    own = {name: EntryPoint(name, one.factory, GROUP) for name, one in BUILT_IN.items()}
    others = {one.name: one for one in entry_points(group=GROUP) if one.name not in own}
    return own | others


def make_embedder(text: str, settings: EmbedderSettings | None = None) -> Embedder:
    """Make an embedder.

    Parameters
    ----------
    text : str
        Its name, and for some an argument: ``objects``, ``onnx:model.onnx``.
    settings : EmbedderSettings, optional

    Returns
    -------
    embedder : Embedder

    Raises
    ------
    SettingError
        When there is no such embedder, what it needs is not installed, or it does not follow the
        protocol.
    """
    name, colon, argument = text.partition(":")
    known = find_embedders()
    check_choice("embedder", name, tuple(known))
    own = BUILT_IN.get(name)
    if own is not None and bool(own.argument) != bool(argument):
        wanted = f"{name}:{own.argument}" if own.argument else name
        raise SettingError(f"embedder {text!r} is not complete; give {wanted}")
    factory: Factory = _load(known[name])
    embedder = factory(argument if colon else None, settings or EmbedderSettings())
    _check(embedder, text)
    return embedder


def import_library(module: str, name: str, needs: str) -> ModuleType:
    """Import a library that an embedder needs.

    Parameters
    ----------
    module : str
    name : str
        The embedder, for the error.
    needs : str
        How to install it, for the error.

    Raises
    ------
    SettingError
        When it is not installed, or fails to import.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = f"{error.name} is not installed" if error.name else str(error)
        raise SettingError(f"embedder {name!r} cannot be used: {missing}; {needs}") from error


def _load(point: EntryPoint) -> Factory:
    try:
        factory: Factory = point.load()
    except (ImportError, AttributeError) as error:
        raise SettingError(
            f"embedder {point.name!r} cannot be loaded from {point.value} ({error}); install its "
            "package again"
        ) from error
    return factory


def _check(embedder: Embedder, text: str) -> None:
    """Refuse an object that is not an embedder."""
    follows = isinstance(embedder, Embedder) and embedder.kind in KINDS
    if follows and embedder.kind != "text":
        follows = isinstance(embedder, PictureEmbedder)
    if not follows:
        raise SettingError(
            f"embedder {text!r} gave {type(embedder).__name__}, expected name, kind, dim, version "
            f"and embed, a kind of {', '.join(KINDS)}, and prepare for pictures; tell its author"
        )

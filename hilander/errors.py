"""Errors. Each message names what was got, what was expected and what to do.

::

    HiLanderError
    ├── EmbeddingError   (ValueError)  the embeddings cannot be clustered as they are
    │   └── EmbeddingTypeError (TypeError)  they hold objects that are not numbers
    ├── LabelError       (ValueError)  the labels do not fit the embeddings or the task
    ├── GraphError       (ValueError)  a k-NN graph is malformed or cannot be built
    ├── LevelError       (IndexError)  a level that does not exist, or levels that do not match
    ├── SettingError     (ValueError)  an option has an invalid value
    ├── ModelError       (ValueError)  a model does not fit the data, or its folder is damaged
    ├── FileFormatError  (ValueError)  a file is missing, truncated or of another format
    │   └── MissingFileError (FileNotFoundError)  it does not exist
    └── OutputError      (OSError)     the output path is taken, read-only or full
"""


class HiLanderError(Exception):
    """Base class of all errors of this library."""


class EmbeddingError(HiLanderError, ValueError):
    """The embeddings cannot be clustered as they are."""


class EmbeddingTypeError(EmbeddingError, TypeError):
    """The embeddings hold objects that are not numbers."""


class LabelError(HiLanderError, ValueError):
    """The labels do not fit the embeddings or the task."""


class GraphError(HiLanderError, ValueError):
    """A k-NN graph is malformed or cannot be built."""


class LevelError(HiLanderError, IndexError):
    """A level that a hierarchy does not have, or levels that do not match."""


class SettingError(HiLanderError, ValueError):
    """An option has an invalid value."""


class ModelError(HiLanderError, ValueError):
    """A model does not fit the data, or its folder is damaged."""


class FileFormatError(HiLanderError, ValueError):
    """A file is missing, truncated or of another format."""


class MissingFileError(FileFormatError, FileNotFoundError):
    """A file or folder does not exist."""


class OutputError(HiLanderError, OSError):
    """The output path is taken, read-only or full."""


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a value that is not one of the choices; the message suggests the nearest."""
    if value in choices:
        return
    from difflib import get_close_matches

    near = get_close_matches(str(value), choices, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(choices)}"
    raise SettingError(f"{name}={value!r} is not known; {hint}")

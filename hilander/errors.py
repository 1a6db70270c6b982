"""Errors that say what came, what was expected and what to do.

::

    HiLanderError
    ├── EmbeddingError   (ValueError)  the embeddings cannot be clustered as they are
    │   └── EmbeddingTypeError (TypeError)  they hold objects that are no numbers
    ├── LabelError       (ValueError)  the labels do not fit the embeddings or the task
    ├── GraphError       (ValueError)  a k-NN graph is malformed or cannot be built
    ├── LevelError       (IndexError)  a level that is not there, or levels that do not fit
    ├── SettingError     (ValueError)  an option has a value that means nothing
    ├── ModelError       (ValueError)  a model does not fit the data, or its folder is damaged
    ├── FileFormatError  (ValueError)  a file is missing, truncated or not what it says it is
    │   └── MissingFileError (FileNotFoundError)  it is not there
    └── OutputError      (OSError)     the output place is taken, read-only or full
"""


class HiLanderError(Exception):
    """Base of every error this library raises on purpose."""


class EmbeddingError(HiLanderError, ValueError):
    """The embeddings cannot be clustered as they are."""


class EmbeddingTypeError(EmbeddingError, TypeError):
    """The embeddings hold objects that are no numbers."""


class LabelError(HiLanderError, ValueError):
    """The labels do not fit the embeddings or the task."""


class GraphError(HiLanderError, ValueError):
    """A k-NN graph is malformed or cannot be built."""


class LevelError(HiLanderError, IndexError):
    """A level that a hierarchy does not have, or levels that do not fit each other."""


class SettingError(HiLanderError, ValueError):
    """An option has a value that means nothing."""


class ModelError(HiLanderError, ValueError):
    """A model does not fit the data, or its folder is damaged."""


class FileFormatError(HiLanderError, ValueError):
    """A file is missing, truncated or not what it says it is."""


class MissingFileError(FileFormatError, FileNotFoundError):
    """A file or folder is not there."""


class OutputError(HiLanderError, OSError):
    """The output place is taken, read-only or full."""


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a value that is not one of the choices, suggesting the nearest."""
    if value in choices:
        return
    from difflib import get_close_matches

    near = get_close_matches(str(value), choices, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(choices)}"
    raise SettingError(f"{name}={value!r} is not known; {hint}")

"""Learn to cluster: a hierarchy of clusters for embeddings of new identities."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hilander.collection.collection import Collection
    from hilander.estimator import HiLander
    from hilander.hierarchy.hierarchy import Hierarchy

__version__ = "0.1.0"
__all__ = ["Collection", "HiLander", "Hierarchy", "__version__"]


def __getattr__(name: str) -> Any:
    """Import the public classes on first use, so that ``import hilander`` is quick."""
    if name == "HiLander":
        from hilander.estimator import HiLander

        return HiLander
    if name == "Hierarchy":
        from hilander.hierarchy.hierarchy import Hierarchy

        return Hierarchy
    if name == "Collection":
        from hilander.collection.collection import Collection

        return Collection
    raise AttributeError(f"module 'hilander' has no attribute {name!r}")

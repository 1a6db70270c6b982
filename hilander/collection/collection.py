"""`Collection`: a run that grows, and whose clusters keep their ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import IntArray
from hilander.collection.changes import Table, to_table
from hilander.collection.known import News
from hilander.collection.storage import Notes, Stored, read_collection, write_source
from hilander.collection.update import Drop, Update, update_collection
from hilander.errors import OutputError, SettingError
from hilander.estimator import HiLander
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.membership import Membership
from hilander.hierarchy.storage import RUN_KIND
from hilander.io.locks import lock_output
from hilander.io.writing import folder_writer

Rerun = bool | Literal["auto"]


@dataclass
class Collection:
    """Items on disk, clustered by a model; items can be added and removed.

    Make one with `create` or `open`. Every run folder that `hilander cluster` wrote is one.

    Attributes
    ----------
    folder : Path

    Examples
    --------
    >>> import tempfile
    >>> from hilander import Collection
    >>> from hilander.synthetic import make_identities
    >>> X, _ = make_identities(seed=0)
    >>> collection = Collection.create(tempfile.mkdtemp())
    >>> added = collection.add(X[:500])
    >>> added = collection.add(X[500:])
    >>> collection.labels().shape
    (600,)
    """

    folder: Path
    _stored: Stored = field(repr=False)
    _model: HiLander | None = field(default=None, repr=False)

    @classmethod
    def create(cls, folder: str | Path, model: HiLander | str | Path = "pretrained") -> Collection:
        """Create a collection without items.

        Parameters
        ----------
        folder : path
            Must not exist, or be empty.
        model : HiLander, or path of a model folder, or "pretrained"
            A copy of it is kept in the collection.
        """
        from hilander.linkage.storage import PRETRAINED

        target = Path(folder)
        if target.is_dir() and any(target.iterdir()):
            raise OutputError(f"{folder} is not empty; use Collection.open, or another folder")
        if not isinstance(model, HiLander):
            is_pretrained = model == "pretrained" and not Path(model).exists()
            model = HiLander.load(PRETRAINED if is_pretrained else model)
        asked = {"early_stop": None, "decoder": None, "k": None, "p_tau": None}
        notes = Notes(asked=asked, whiten=model.whiten)
        with folder_writer(target, RUN_KIND) as inside:
            write_source(inside, model, np.empty((0, 0), dtype=np.float32), notes, to_table([]))
        return cls.open(folder)

    @classmethod
    def open(cls, folder: str | Path) -> Collection:
        """Open a collection or a run folder. Large files are mapped, not read."""
        return cls(Path(folder), read_collection(folder))

    def __len__(self) -> int:
        return len(self._stored.ids)

    @property
    def ids(self) -> npt.NDArray[Any]:
        """Ids of the items, shape (n_items,)."""
        return self._stored.ids.copy()

    @property
    def model(self) -> HiLander:
        """The model of the collection."""
        if self._model is None:
            self._model = self._stored.load_model()
        return self._model

    @property
    def changes(self) -> Table:
        """What each update changed, as columns; see `hilander.collection.changes`."""
        return self._stored.read_changes()

    def add(
        self,
        X: Any,
        ids: npt.ArrayLike | None = None,
        *,
        labels: npt.ArrayLike | None = None,
        known: News | None = None,
        rerun: Rerun = "auto",
        wait: bool = False,
    ) -> Update:
        """Add items: they join clusters, start new ones, or bring some together.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        ids : array-like of shape (n_samples,), optional
            None of them may be in the collection. By default items are numbered.
        labels : array-like of shape (n_samples,), optional
            True identities, for the explorer.
        known : News, optional
            What is newly known: pairs, columns and identities. It holds at every level from now on,
            as does all that was known.
        rerun : bool or "auto"
            Cluster the whole set again. "auto": when it has grown or shrunk by half since it was
            clustered as a whole. Ids of clusters are kept in either case.
        wait : bool
            Wait until another process that writes the folder is done.

        Returns
        -------
        update : Update
            What was done. The folder is replaced in one step: it holds the old state or the new.
        """
        return self._update(Drop(X, ids, labels), None, rerun, wait, known)

    def learn(self, known: News, *, rerun: Rerun = "auto", wait: bool = False) -> Update:
        """Hold what is newly known of the items; clusters that break it are found again."""
        return self._update(None, None, rerun, wait, known)

    def remove(
        self,
        ids: npt.ArrayLike,
        *,
        known: News | None = None,
        rerun: Rerun = "auto",
        wait: bool = False,
    ) -> Update:
        """Remove items by their ids; all of them must be in the collection."""
        return self._update(None, np.asarray(ids), rerun, wait, known)

    def update(
        self,
        X: Any,
        ids: npt.ArrayLike | None = None,
        *,
        remove: npt.ArrayLike | None = None,
        labels: npt.ArrayLike | None = None,
        columns: Mapping[str, npt.ArrayLike] | None = None,
        known: News | None = None,
        rerun: Rerun = "auto",
        wait: bool = False,
    ) -> Update:
        """Remove items and add others in one step. An id that is removed may be added again.

        `columns` has more facts about the added items, such as their ``path``; `known` is as for
        `add`.
        """
        drop = Drop(X, ids, labels, columns or {})
        gone = None if remove is None else np.asarray(remove)
        return self._update(drop, gone, rerun, wait, known)

    def labels(self) -> IntArray:
        """Id of the cluster of each item, shape (n_items,); in the order of `ids`."""
        return self._stored.labels()

    def members(self, cluster: int) -> npt.NDArray[Any]:
        """Ids of the items of a cluster."""
        found: npt.NDArray[Any] = self._stored.ids[self.labels() == cluster]
        if not len(found):
            raise SettingError(f"cluster {cluster} does not exist; use one of labels()")
        return found

    def hierarchy(self) -> Hierarchy:
        """All levels. `hierarchy.cluster_ids` are the ids of the clusters of the last one."""
        if self._stored.hierarchy is None:
            raise SettingError(f"{self.folder} has no items yet; add some")
        return self._stored.hierarchy

    def known_columns(self) -> list[tuple[str, str]]:
        """Kind ("together" or "apart") and name of each column that an update compares."""
        return [(column.kind, column.name) for column in self._stored.read_known().columns]

    def assign(self, X: Any, top: int = 5) -> Membership:
        """The most probable clusters of rows, without adding them; see `HiLander.assign`."""
        return self.model.assign(X, self.hierarchy(), top)

    def _update(
        self,
        drop: Drop | None,
        remove: npt.NDArray[Any] | None,
        rerun: Rerun,
        wait: bool,
        known: News | None = None,
    ) -> Update:
        with lock_output(self.folder, wait=wait):
            stored = read_collection(self.folder)  # another process may have changed it
            done = update_collection(stored, self.model, drop, remove, rerun, known)
            self._stored = read_collection(self.folder)
        return done

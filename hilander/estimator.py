"""`HiLander`: the scikit-learn estimator that learns to cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from hilander.arrays.rows import FloatArray
from hilander.embeddings.partial_labels import encode_known, encode_partly
from hilander.embeddings.points import is_single_row, read_points
from hilander.embeddings.validation import has_names
from hilander.graph.knn_graph import KnnGraph
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import LevelStep
from hilander.hierarchy.work import Work
from hilander.training.fitted import FittedParts
from hilander.training.parameters import NOT_GIVEN
from hilander.training.stored_parts import StoredParts

if TYPE_CHECKING:
    from hilander.engines.protocol import Engine
    from hilander.hierarchy.constraints.constraints import Constraints
    from hilander.hierarchy.decoding.decode import Decoder
    from hilander.hierarchy.membership import Membership
    from hilander.linkage.evidence.training import EvidenceLearning
    from hilander.linkage.paper.settings import Encoder, Features
    from hilander.linkage.paper.training import LearningSettings
    from hilander.training.inference import RunSettings

KNOWN_NAMES = ("constraints", "must_link", "cannot_link", "known_labels", "ids")


class HiLander(StoredParts, FittedParts, BaseEstimator):  # type: ignore[misc]
    """Learn from labelled embeddings how to cluster, then cluster embeddings of new identities.

    Parameters
    ----------
    method : {"evidence", "paper"}
        "evidence" classifies edges of the k-NN graph by features such as ranks and shared
        neighbours, and merges clusters by links. It needs few identities and is trained for other
        size distributions than theirs. "paper" is the published model: a graph network on the raw
        embeddings.
    k : int or "auto"
        Neighbours of each point, the point itself not counted. "auto": 15, and 10 for "paper".
    p_tau : float or "auto"
        Least probability of a link. "auto" chooses it on held-out identities, for "evidence"
        together with the least probability of a merge of clusters.
    decoder : {"auto", "parents", "contract", "leiden", "infomap"}
        How links become clusters. "parents" is the paper's rule, and "auto" for "paper". "leiden",
        "auto" for "evidence", finds communities of points, and "infomap" does so with Infomap
        (extra `infomap`). "contract" verifies every merge. "evidence" then merges clusters by
        their links.
    features : {"identity", "average", "concat", "auto"}
        Input of the network for each node: the feature of its peak, the mean of its points, or
        both. "auto" chooses on held-out identities. For "paper", like `encoder`, `layers`, `heads`.
    encoder : {"attention", "convolution"}
        How a node's features are mixed with those of its neighbours.
    hidden : int, optional
        Width of the network; by default 32, and 512 for "paper".
    layers, heads : int
        Encoder layers and attention heads.
    centre : bool or "auto"
        Subtract the training mean. "auto": if the embeddings lie in a narrow cone.
    whiten : bool or "auto"
        Scale down directions in which members of one identity differ. "auto", for "evidence": by a
        whitening or a learned metric, if that helps held-out identities.
    epochs : int, optional
        Passes over the training graphs, in place of those of `learning`.
    learning : EvidenceLearning or LearningSettings, optional
        Batch size, learning rate and more; see `hilander.linkage.evidence.training` for "evidence"
        and `hilander.linkage.paper.training` for "paper".
    start : {"auto", "pretrained", "none"} or path
        For "evidence", the weights that training starts from: those of the pretrained model, random
        ones, or those of a model folder. "auto": random ones.
    prior : {"auto", "pretrained", "none"} or path
        For "evidence", a second model whose log-odds of a link are averaged with the trained one's.
        Its weight falls from 1 as the training set grows; a model of a weight below 0.25 is not
        used. "auto": the pretrained model.
    val_fraction : float
        Share of the identities held out to choose what is "auto".
    tune_k : bool
        For "paper", choose k on held-out identities too.
    early_stop : bool
        Stop at a level that adds more than 1/k of the edges that the level before added.
    random_state : int
        Seed: the same seed gives the same weights.
    device : str
        "auto" uses a GPU if there is one.
    verbose : bool
        Draw progress bars (only on a terminal) and print what was decided.
    adviser : str
        The name of `prior` in version 0.1; to be removed in version 0.3.

    Attributes
    ----------
    model_ : Model
        The trained model as one value.
    network_, rules_, preparation_, history_, summary_ : parts of `model_`
    hierarchy_, labels_ : Hierarchy, ndarray of shape (n_samples,)
        The training embeddings, clustered by the trained model.
    n_features_in_ : int

    Examples
    --------
    >>> from hilander import HiLander
    >>> from hilander.synthetic import make_identities
    >>> X, y = make_identities(seed=0)
    >>> model = HiLander(epochs=2, hidden=16).fit(X, y)
    >>> X_new, _ = make_identities(seed=1)
    >>> model.predict(X_new).shape
    (600,)
    """

    def __init__(
        self,
        *,
        method: Literal["evidence", "paper"] = "evidence",
        k: int | Literal["auto"] = "auto",
        p_tau: float | Literal["auto"] = "auto",
        decoder: Decoder | Literal["auto"] = "auto",
        features: Features | Literal["auto"] = "concat",
        encoder: Encoder = "attention",
        hidden: int | None = None,
        layers: int = 1,
        heads: int = 1,
        centre: bool | Literal["auto"] = "auto",
        whiten: bool | Literal["auto"] = "auto",
        epochs: int | None = None,
        learning: EvidenceLearning | LearningSettings | None = None,
        start: str | Path = "auto",
        prior: str | Path = "auto",
        val_fraction: float = 0.2,
        tune_k: bool = False,
        early_stop: bool = False,
        random_state: int = 0,
        device: str = "auto",
        verbose: bool = False,
        adviser: str | Path = NOT_GIVEN,
    ) -> None:
        self.method = method
        self.k = k
        self.p_tau = p_tau
        self.decoder = decoder
        self.features = features
        self.encoder = encoder
        self.hidden = hidden
        self.layers = layers
        self.heads = heads
        self.centre = centre
        self.whiten = whiten
        self.epochs = epochs
        self.learning = learning
        self.start = start
        self.prior = prior
        self.val_fraction = val_fraction
        self.tune_k = tune_k
        self.early_stop = early_stop
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.adviser = adviser

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        checkpoint: str | Path | None = None,
        constraints: Constraints | None = None,
        must_link: Any = (),
        cannot_link: Any = (),
    ) -> HiLander:
        """Learn to cluster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Embeddings of labelled identities.
        y : array-like of shape (n_samples,)
            Their identities: ints or strings. Empty text, NaN and None mean unknown, and so does -1
            if no other label is negative: such points are left out with a warning. Without labels,
            use `pretrained`; a pretrained model without `y` clusters X and learns nothing.
        checkpoint : path of a folder, optional
            Stores the state after each epoch. The same call after an interruption continues from
            it and ends with the same weights.
        constraints, must_link, cannot_link
            As for `cluster`. A point of unknown identity that is linked to a known one has its
            label, and `hierarchy_` keeps them.

        Returns
        -------
        self : HiLander
        """
        from hilander.hierarchy.constraints.given import combine_given, spread_labels
        from hilander.training.inference import walk_points
        from hilander.training.train import train_model

        points = read_points(X)
        given = combine_given(points, constraints, must_link, cannot_link)
        if y is None and self._is_pretrained:
            model = self.model_
        else:
            if given is not None:
                y = spread_labels(encode_partly(y, len(points))[0], given)
            labels, known = encode_known(y, len(points))
            model = train_model(
                self, points[known], labels, checkpoint=checkpoint, verbose=self.verbose
            )
            self._is_pretrained = False
            if self.verbose:
                print(f"hilander: {model.describe()}")
        # Nothing below fails, so that a fit that fails leaves an earlier one as it was.
        if not self._is_pretrained:
            self._check_columns(X, points, reset=True)
        self.model_ = model
        settings = replace(self.run_settings(), verbose=False)
        self.hierarchy_ = Hierarchy.of_steps(
            walk_points(model, points, settings, constraints=given)
        )
        self.hierarchy_.constraints = given
        self.labels_ = self.hierarchy_.labels(-1)
        return self

    def cluster(
        self,
        X: Any,
        *,
        k: int | None = None,
        p_tau: float | None = None,
        decoder: Decoder | None = None,
        graph: KnnGraph | None = None,
        memory: str | int | None = None,
        constraints: Constraints | None = None,
        must_link: Any = (),
        cannot_link: Any = (),
        known_labels: Any = None,
        ids: Any = None,
        engine: Engine | None = None,
    ) -> Hierarchy:
        """Cluster embeddings into a hierarchy.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or path
            Embeddings of identities that may all be new; the workers of `engine` read the shards
            (.parquet or .npy) of a folder.
        k, p_tau, decoder : optional
            In place of the trained model's.
        graph : KnnGraph, optional
            Your own graph, in place of a search; its k is used. It has to be a graph of
            `preparation_.apply(X)`, because the model may centre and map embeddings.
        memory : str or int, optional
            Most memory to use, such as "4GB"; the error names an amount that is enough.
        constraints : Constraints, optional
            What is known, as `hilander.hierarchy.constraints.building.build_constraints` makes it.
        must_link, cannot_link : sequence of pairs, optional
            Points of one identity, and of two; row numbers, or `ids`. They hold at every level.
        known_labels, ids : array-like of shape (n_samples,), optional
            Known identities of some points, which hold too (unknown ones as for `fit`), and names
            of the points in the pairs.
        engine : ThreadEngine or RayEngine, optional
            Where the stages run, for shards threads by default; takes k, p_tau and decoder only.

        Returns
        -------
        hierarchy : Hierarchy of n_samples points
        """
        from hilander.hierarchy.constraints.given import combine_given

        self._check_fitted()
        asked: dict[str, Any] = {"k": k, "p_tau": p_tau, "decoder": decoder}
        if engine is not None or isinstance(X, str | Path):
            from hilander.sharded.cluster import cluster_source

            known = (constraints, must_link, cannot_link, known_labels, ids)
            others = dict(zip(KNOWN_NAMES, known, strict=True), graph=graph, memory=memory)
            return cluster_source(self.model_, X, self.run_settings(asked), engine, **others)
        if is_single_row(X):
            self._read_rows(X)
            return Hierarchy.of_one_cluster(1)
        given = combine_given(X, constraints, must_link, cannot_link, known_labels, ids)
        asked["graph"] = graph
        work = Work()
        steps = self.walk(X, **asked, memory=memory, work=work, constraints=given)
        as_released, keep = self.rules_.as_released, memory is None
        found = Hierarchy.of_steps(steps, keep_last=as_released, keep_graph=keep, work=work)
        found.constraints = given
        return found

    def assign(self, X: Any, hierarchy: Hierarchy, top: int = 5) -> Membership:
        """The most probable clusters of embeddings that are not in a hierarchy, row by row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            One row is enough.
        hierarchy : Hierarchy
            Made by this model, or read from its run folder.
        top : int

        Returns
        -------
        membership : Membership
            `clusters` and `probability` of shape (n_samples, top), `new` of shape (n_samples,).
        """
        from hilander.training.assignment import assign_points

        self._check_fitted()
        points = self._read_rows(X)
        return assign_points(self.model_, points, hierarchy, top, self.method, self.device)

    def walk(
        self,
        X: Any,
        *,
        k: int | None = None,
        p_tau: float | None = None,
        early_stop: bool | None = None,
        decoder: Decoder | None = None,
        graph: KnnGraph | None = None,
        memory: str | int | None = None,
        work: Work | None = None,
        constraints: Constraints | None = None,
    ) -> Iterator[LevelStep]:
        """Cluster embeddings level by level, with the graph and the scores of each level.

        Parameters
        ----------
        X, k, p_tau, decoder, early_stop, graph, memory, constraints
            As for `cluster`; early_stop in place of the trained model's.
        work : Work, optional
            Records time and memory of each stage; a `KeptWork` also stores the results on disk.

        Returns
        -------
        steps : iterator of LevelStep
            The input is checked at once. Each level is computed when the iterator reaches it.
        """
        from hilander.training.inference import walk_points

        self._check_fitted()
        points = read_points(X, getattr(self, "n_features_in_", None), as_stored=True)
        self._check_columns(X, points, reset=False)
        asked = {"k": k, "p_tau": p_tau, "early_stop": early_stop, "decoder": decoder}
        settings = self.run_settings(asked, memory)
        return walk_points(
            self.model_, points, settings, graph=graph, work=work, constraints=constraints
        )

    def run_settings(
        self, asked: Mapping[str, Any] | None = None, memory: str | int | None = None
    ) -> RunSettings:
        """Settings of a clustering run, for `hilander.training.inference`.

        `asked` holds k, p_tau, early_stop and decoder, in place of the trained model's.
        """
        from hilander.training.inference import RunSettings

        own = {name: getattr(self, name) for name in ("method", "whiten", "device", "verbose")}
        return RunSettings(asked=asked or {}, adapt_k=self.k == "auto", memory=memory, **own)

    def save(self, folder: str | Path) -> Path:
        """Write the model to a folder (safetensors and JSON), whole or not at all."""
        from importlib.metadata import version

        from hilander.training.model_folder import ModelFolder, write_model_folder

        self._check_fitted()
        stored = ModelFolder(self.model_, self.get_params(deep=False))
        return write_model_folder(stored, Path(folder), version("hilander"))

    def _read_rows(self, X: Any) -> FloatArray:
        return read_points(X, getattr(self, "n_features_in_", None), fewest=1)

    def _check_columns(self, X: Any, points: FloatArray, *, reset: bool) -> None:
        """Store, or compare, the number of features and their names, as scikit-learn does."""
        if reset or hasattr(self, "n_features_in_"):
            named = X if has_names(X) else points
            validate_data(self, named, reset=reset, skip_check_array=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "clusterer" if self._is_pretrained else None
        tags.target_tags.required = not self._is_pretrained
        return tags

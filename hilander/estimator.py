"""`HiLander`: the scikit-learn estimator that learns to cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from hilander.arrays.rows import FloatArray, IntArray
from hilander.embeddings.equal_rows import drop_equal_rows
from hilander.embeddings.labels import check_trainable, encode_known
from hilander.embeddings.points import read_points
from hilander.embeddings.preparation import PerSetPreparation, Preparation
from hilander.embeddings.validation import has_names
from hilander.errors import SettingError
from hilander.graph.knn_graph import KnnGraph
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import LevelStep
from hilander.hierarchy.rules import Rules
from hilander.metrics.scores import bcubed_f
from hilander.training.parameters import NOT_GIVEN, check_enough

if TYPE_CHECKING:
    from hilander.hierarchy.decoding.decode import Decoder
    from hilander.hierarchy.work import Work
    from hilander.linkage.evidence.training import EvidenceLearning
    from hilander.linkage.paper.settings import Encoder, Features
    from hilander.linkage.paper.training import LearningSettings
    from hilander.training.inference import RunSettings
    from hilander.training.model_folder import ModelFolder

_NOT_FITTED = (
    "This %(name)s instance is not fitted yet, expected one that has learnt; call fit(X, y) with "
    "labelled embeddings, or take %(name)s.pretrained(), which needs no labels"
)


class HiLander(BaseEstimator):  # type: ignore[misc]
    """Learn from labelled embeddings how to group, then group embeddings of unseen identities.

    Parameters
    ----------
    method : {"evidence", "paper"}
        "evidence" judges edges by what can be seen of them (ranks, shared neighbours, sizes, …)
        and verifies merges; it learns from few identities and bears other size distributions.
        "paper" is the published model: a graph network on the raw embeddings.
    k : int or "auto"
        Neighbours of each point, itself not counted. "auto": 15, and 10 for "paper".
    p_tau : float or "auto"
        Least probability of a link. "auto" chooses it on held-out identities; for "evidence" it
        then follows the spread of the sizes that are found.
    decoder : {"auto", "parents", "contract", "leiden", "infomap"}
        How links become clusters: "parents" is the paper's rule and "auto" for "paper";
        "leiden", "auto" for "evidence", finds communities of the points and verifies the merges
        of those; "infomap" does likewise (extra `infomap`); "contract" verifies all merges.
    whiten : bool or "auto"
        Weigh down directions in which members of one identity differ. "auto": for "evidence",
        when it helps unseen identities, or a metric learnt from the identities, if that helps
        more; in the box, within a set's own clusters, likewise.
    layers, heads : int
        Encoder layers and attention heads; for "paper", like the next two and `tune_k`.
    features : {"identity", "average", "concat", "auto"}
        What a node shows the network: its peak's feature, the mean of its points, or both. "auto"
        chooses on held-out identities, which trains three networks more.
    encoder : {"attention", "convolution"}
        How a node is mixed with its neighbours.
    hidden : int, optional
        Width of the network; by default 512 for "paper", 32 for "evidence".
    centre : bool or "auto"
        Subtract the training mean before taking cosines. "auto": in a narrow cone.
    epochs : int or None
        Passes over the training graphs; None takes those of `learning`.
    learning : EvidenceLearning or LearningSettings, optional
        Steps, rates and more; see `hilander.linkage.evidence.training` for "evidence" and
        `hilander.linkage.paper.training` for "paper".
    start : {"auto", "pretrained", "none"} or path
        For "evidence", the weights that training starts from: those of the pretrained model, random
        ones, or those of a model folder of yours. "auto": random ones.
    prior : {"auto", "pretrained", "none"} or path
        For "evidence", a second model whose link probabilities are averaged with the trained one's.
        Its weight falls from 1 to 0.25 as the number of training points grows; below that it is not
        used. "auto": the pretrained model.
    val_fraction : float
        Share of the identities set aside to choose what is "auto".
    tune_k : bool
        Choose k on held-out identities too.
    early_stop : bool
        Stop at a level that adds more than 1/k of the edges the one before added.
    random_state : int
        Seed: the same seed gives the same weights.
    device : str
        "auto" takes a GPU if there is one.
    verbose : bool
        Draw progress bars (only on a terminal) and print what was decided.
    adviser : str
        The name of `prior` in version 0.1; to be removed in version 0.3.

    Attributes
    ----------
    model_ : Model
        The trained model as one value; the next five are its parts.
    network_ : EvidenceNetwork or Lander
        The trained network.
    rules_ : Rules
        k, p_tau and stopping, as chosen.
    preparation_ : Preparation or OwnPreparation
        Normalisation, centring and a map, as learnt.
    history_ : list of dict
        Losses of each epoch.
    summary_ : dict
        Counts and the validation table.
    hierarchy_, labels_ : Hierarchy, ndarray of shape (n_samples,)
        The training embeddings, clustered by the trained model.
    n_features_in_ : int

    Examples
    --------
    >>> from hilander import HiLander
    >>> from hilander.data import make_identities
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

    def fit(self, X: Any, y: Any = None, *, checkpoint: str | Path | None = None) -> HiLander:
        """Learn to cluster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Embeddings of labelled identities.
        y : array-like of shape (n_samples,)
            Their identities: ints, strings, anything that can be compared. Required; without any,
            `HiLander.pretrained().cluster(X)` groups embeddings. An int of -1, the others being 0
            and above, means unknown: it is not learnt from, and a warning says so.
        checkpoint : path of a folder, optional
            Keeps the end of each epoch there. The same call after a kill goes on from it and ends
            with the same weights.

        Returns
        -------
        self : HiLander
        """
        from hilander.training.inference import walk_points
        from hilander.training.methods import find_method

        method = find_method(self.method)
        points = read_points(X)
        labels, known = encode_known(y, len(points))
        check_trainable(labels)
        kept = points[known]
        if method.merges_equal_rows:
            kept, labels = drop_equal_rows(kept, labels)
        plan = method.plan(self, kept, labels)
        check_enough(self, plan.rules.k, len(kept))
        preparation = method.prepare(self, kept, labels, plan)
        folder = None if checkpoint is None else Path(checkpoint)
        features = preparation.apply_to_training_set(kept)
        learnt = method.learn(
            features, labels, plan, checkpoint_folder=folder, verbose=self.verbose
        )
        # From here on nothing fails: a fit that does leaves an earlier one as it was.
        self._see_columns(X, points, reset=True)
        self.model_ = replace(learnt, preparation=preparation, n_features=points.shape[1])
        if self.verbose:
            print(f"hilander: {self.model_.describe()}")
        steps = walk_points(self.model_, points, replace(self.run_settings(), verbose=False))
        self.hierarchy_ = Hierarchy.of_steps(steps)
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
    ) -> Hierarchy:
        """Group embeddings into a hierarchy.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Embeddings of identities that may all be new.
        k, p_tau, decoder : optional
            In place of the trained model's own.
        graph : KnnGraph, optional
            Your own graph, in place of a search; its k is used. It has to be a graph of
            `preparation_.apply(X)`: a model may centre and map embeddings, and learned from
            neighbours in that space.
        memory : str or int, optional
            Most memory to take, such as "4GB"; where that is too little, an error says how much is
            enough.

        Returns
        -------
        hierarchy : Hierarchy of n_samples points
        """
        steps = self.walk(X, k=k, p_tau=p_tau, decoder=decoder, graph=graph, memory=memory)
        return Hierarchy.of_steps(steps, keep_last=self.rules_.as_released)

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
    ) -> Iterator[LevelStep]:
        """Group embeddings level by level: what `cluster` collects, graphs and scores with it.

        Parameters
        ----------
        X, k, p_tau, graph, memory
            As for `cluster`.
        early_stop, decoder : optional
            In place of the trained model's own.
        work : Work, optional
            Records what each stage takes; a `KeptWork` keeps it on disk, to go on after a kill.

        Returns
        -------
        steps : iterator of LevelStep
            The input is checked at once; each level is computed when it is asked for.
        """
        from hilander.training.inference import walk_points

        self._check_fitted()
        points = read_points(X, getattr(self, "n_features_in_", None), as_stored=True)
        self._see_columns(X, points, reset=False)
        asked = {"k": k, "p_tau": p_tau, "early_stop": early_stop, "decoder": decoder}
        settings = self.run_settings(asked, memory)
        return walk_points(self.model_, points, settings, graph=graph, work=work)

    def run_settings(
        self, asked: Mapping[str, Any] | None = None, memory: str | int | None = None
    ) -> RunSettings:
        """How this estimator clusters a set, for `hilander.training.inference`.

        Parameters
        ----------
        asked : mapping, optional
            k, p_tau, early_stop, decoder, in place of the trained model's own.
        memory : str or int, optional
            As for `cluster`.
        """
        from hilander.training.inference import RunSettings

        return RunSettings(
            self.method,
            asked or {},
            adapt_k=self.k == "auto",
            whiten=self.whiten,
            memory=memory,
            device=self.device,
            verbose=self.verbose,
        )

    def predict(self, X: Any) -> IntArray:
        """Group embeddings and give the final partition.

        The points of X are clustered jointly: what a point's cluster is depends on the others.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,), ints from 0
        """
        return self.cluster(X).labels(-1)

    def fit_predict(self, X: Any, y: Any = None) -> IntArray:
        """Learn from labelled embeddings and give how the trained model groups the same ones."""
        return self.fit(X, y).labels_

    def score(self, X: Any, y: Any) -> float:
        """BCubed F of the final partition, in [0, 1]."""
        return bcubed_f(y, self.predict(X))

    def save(self, folder: str | Path) -> Path:
        """Write the model to a folder (safetensors and JSON), whole or not at all."""
        from hilander import __version__
        from hilander.training.model_folder import ModelFolder, write_model_folder

        self._check_fitted()
        stored = ModelFolder(self.model_, self.get_params(deep=False))
        write_model_folder(stored, Path(folder), __version__)
        return Path(folder)

    @classmethod
    def load(cls, folder: str | Path, *, device: str = "auto") -> HiLander:
        """Read a model that `save` wrote.

        Parameters
        ----------
        folder : path
        device : str
            Where to run it.
        """
        from hilander.training.model_folder import read_model_folder

        return cls._from_folder(read_model_folder(Path(folder)), device)

    @classmethod
    def pretrained(cls, *, device: str = "auto") -> HiLander:
        """The pretrained model: ready to `cluster` the output of any embedder, without labels.

        Its card is `docs/results/model-card.md`. Where you have labels, `fit` does better.
        """
        from hilander.linkage.storage import PRETRAINED

        return cls.load(PRETRAINED, device=device)

    @classmethod
    def from_reference(
        cls,
        path: str | Path,
        *,
        k_reference: int = 10,
        p_tau: float = 0.5,
        features: Features = "concat",
        early_stop: bool = False,
        device: str = "auto",
    ) -> HiLander:
        """Import weights of the authors' released code, and decode as it does.

        Parameters
        ----------
        path : path of a `.pth` file
        k_reference : int
            The reference's `knn_k`, which counts the node itself.
        p_tau : float
            The reference's `tau`.
        features : {"concat", "identity"}
            "concat" if the reference ran with its cluster features.
        early_stop : bool
        device : str

        Returns
        -------
        model : HiLander, ready to `cluster`, giving the released code's numbers
        """
        from hilander.training.model_folder import import_reference

        if k_reference < 2:
            raise SettingError(f"k_reference={k_reference} counts the node itself; use 2 or more")
        rules = Rules(k_reference - 1, p_tau, early_stop, as_released=True)
        return cls._from_folder(import_reference(Path(path), features, rules), device)

    @property
    def network_(self) -> Any:
        """The trained network."""
        return self.model_.network

    @property
    def rules_(self) -> Rules:
        """k, p_tau and stopping, as chosen."""
        return self.model_.rules

    @property
    def preparation_(self) -> Preparation | PerSetPreparation:
        """Normalisation, centring and a linear map, as learnt."""
        return self.model_.preparation

    @property
    def history_(self) -> list[dict[str, Any]]:
        """Losses of each epoch."""
        return self.model_.history

    @property
    def summary_(self) -> dict[str, Any]:
        """Counts and the validation table."""
        return self.model_.summary

    @classmethod
    def _from_folder(cls, stored: ModelFolder, device: str) -> HiLander:
        estimator = cls(**stored.parameters | {"device": device})
        estimator.model_ = stored.model
        if stored.model.n_features is not None:
            estimator.n_features_in_ = stored.model.n_features
        return estimator

    def _check_fitted(self) -> None:
        check_is_fitted(self, "model_", msg=_NOT_FITTED)

    def _see_columns(self, X: Any, points: FloatArray, *, reset: bool) -> None:
        """Learn, or compare, the number of features and their names, as scikit-learn does."""
        if reset or hasattr(self, "n_features_in_"):
            named = X if has_names(X) else points
            validate_data(self, named, reset=reset, skip_check_array=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

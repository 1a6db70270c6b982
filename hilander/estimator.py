"""`HiLander`: the scikit-learn estimator that learns to cluster."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sklearn.base import BaseEstimator

from hilander.arrays.rows import FloatArray, IntArray
from hilander.embeddings.labels import check_trainable, encode_known
from hilander.embeddings.preparation import OwnPreparation, Preparation
from hilander.errors import SettingError
from hilander.graph.knn_graph import KnnGraph
from hilander.hierarchy.equal_points import leave_copies_out, restore_copies, set_copies_aside
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import LevelStep, walk_levels
from hilander.hierarchy.rules import Rules
from hilander.knn.search import build_knn_graph
from hilander.metrics.scores import bcubed_f
from hilander.training.estimator_input import check_fitted, describe_fit, read_points, see_columns

if TYPE_CHECKING:
    from hilander.hierarchy.decoding.decode import Decoder
    from hilander.hierarchy.work import Work
    from hilander.linkage.evidence.training import EvidenceLearning
    from hilander.linkage.paper.settings import Encoder, Features
    from hilander.linkage.paper.training import LearningSettings
    from hilander.training.paper.recipe import Learned


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
    start, adviser : {"auto", "box", "nothing"} or path
        For "evidence", the model in the box, none, or the folder of one of yours: to begin with
        ("auto": none), and to ask besides what is learned, the less the more there is to learn
        from ("auto": the box).
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
        Draw progress bars (only on a terminal) and say what was decided.

    Attributes
    ----------
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
        adviser: str | Path = "auto",
        val_fraction: float = 0.2,
        tune_k: bool = False,
        early_stop: bool = False,
        random_state: int = 0,
        device: str = "auto",
        verbose: bool = False,
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
        self.adviser = adviser
        self.val_fraction = val_fraction
        self.tune_k = tune_k
        self.early_stop = early_stop
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, checkpoint: str | Path | None = None) -> HiLander:
        """Learn to cluster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Embeddings of labelled identities.
        y : array-like of shape (n_samples,)
            Their identities: ints, strings, anything that can be told apart. Required; without
            any, `HiLander.pretrained().cluster(X)` groups embeddings. An int of -1, the others
            being 0 and above, means unknown: it is not learnt from, and a warning says so.
        checkpoint : path of a folder, optional
            Keeps the end of each epoch there. The same call after a kill goes on from it and ends
            with the same weights.

        Returns
        -------
        self : HiLander
        """
        from hilander.training.plans import check_enough, learn, make_plan, prepare
        from hilander.training.set_preparation import suit_preparation

        points = read_points(X)
        labels, known = encode_known(y, len(points))
        check_trainable(labels)
        as_published = self.method == "paper"  # which sees copies as it sees others
        taught, labels = leave_copies_out(points[known], labels, show_all=as_published)
        plan = make_plan(self, taught, labels)
        check_enough(self, plan.rules.k, len(taught))
        preparation = prepare(self, taught, labels, plan.rules.k)
        folder = Path(checkpoint) if checkpoint is not None else None
        learned = learn(preparation.apply_to_taught(taught), labels, plan, folder, self.verbose)
        # From here on nothing fails: a fit that does leaves an earlier one as it was.
        see_columns(self, X, points, reset=True)
        self._keep(learned, preparation)
        if self.verbose:
            print(describe_fit(self))
        shown, copies = set_copies_aside(points, show_all=as_published)
        prepared = suit_preparation(self, shown, self.rules_).apply(shown)
        steps = self._walk(prepared, self.rules_)
        self.hierarchy_ = Hierarchy.of_steps(restore_copies(steps, copies))
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
            Your own graph, in place of a search; its k is used. Of `preparation_.apply(X)`: a model
            may centre and map embeddings, and learned from neighbours in that space.
        memory : str or int, optional
            Most memory to take, such as "4GB"; an error says what would do if it does not.

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
            Notes what each stage takes; a `KeptWork` keeps it on disk, to go on after a kill.

        Returns
        -------
        steps : iterator of LevelStep
            The input is checked at once, each level is worked out when it is asked for.
        """
        from hilander.hierarchy.budget import load_of, plan_memory
        from hilander.training.plans import rules_for
        from hilander.training.set_preparation import suit_preparation

        check_fitted(self)
        points = read_points(X, getattr(self, "n_features_in_", None), as_stored=True)
        see_columns(self, X, points, reset=False)
        points, copies = set_copies_aside(
            points, show_all=self.method == "paper" or graph is not None
        )
        rules = rules_for(
            self, len(points), graph, k=k, p_tau=p_tau, early_stop=early_stop, decoder=decoder
        )
        folder = getattr(work, "folder", None)
        plan = plan_memory(load_of(self, points, rules), memory, may_map=folder is not None)
        prepared = plan.prepare(suit_preparation(self, points, rules, graph, work), points, folder)
        search = partial(build_knn_graph, verbose=self.verbose, memory=plan.search)
        steps = self._walk(
            prepared, rules, graph=graph, search=search, work=work, memory=plan.score
        )
        return restore_copies(steps, copies)

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
        from hilander.training.model_folder import save_model

        check_fitted(self)
        save_model(self, Path(folder))
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
        from hilander.training.model_folder import load_model

        return load_model(cls, Path(folder), device)

    @classmethod
    def pretrained(cls, *, device: str = "auto") -> HiLander:
        """The model in the box: ready to `cluster` what any embedder made, without labels.

        Its card is `docs/model-card.md`. Where you have labels, `fit` does better.
        """
        from hilander.training.model_folder import load_box

        return load_box(cls, device)

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
        return import_reference(cls, Path(path), features, rules, device)

    def _keep(self, learned: Learned, preparation: Preparation | OwnPreparation) -> None:
        self.network_, self.rules_ = learned.network, learned.rules
        self.history_, self.summary_ = learned.history, learned.summary
        self.preparation_ = preparation

    def _walk(self, points: FloatArray, rules: Rules, **how: Any) -> Iterator[LevelStep]:
        from hilander.training.plans import make_scorer

        score = make_scorer(self.network_, self.device, rules, how.pop("memory", None))
        if getattr(how.get("work"), "is_continued", False) and hasattr(score, "begin"):
            score.begin(points)
        return walk_levels(points, score, rules, **how)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

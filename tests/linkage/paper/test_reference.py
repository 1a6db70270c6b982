"""The released code's own numbers, from its own weights."""

import pickle
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from hilander import HiLander
from hilander.errors import FileFormatError, ModelError, SettingError
from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.rules import Rules
from hilander.linkage.paper.lander import Lander
from hilander.linkage.paper.reference import import_reference_weights
from hilander.linkage.paper.scorer import LanderScorer

TOLERANCE = 1e-5


def golden_pairs(shared_data):
    pairs = [
        path
        for path in sorted(shared_data.glob("golden/*.npz"))
        if path.with_suffix(".pth").is_file()
    ]
    if not pairs:
        pytest.skip(f"no golden files under {shared_data}")
    return pairs


def features_of(path):
    return "concat" if "concat" in path.stem else "identity"


def same_partition(one, two):
    pairs = len(np.unique(np.stack([one, two]), axis=1).T)
    return pairs == len(np.unique(one)) == len(np.unique(two))


class Golden:
    """One golden file, its edges in the order of (centre, neighbour)."""

    def __init__(self, path):
        with np.load(path) as stored:
            self.arrays = dict(stored)
        self.path, self.features = path, features_of(path)
        self.k_reference, self.tau = int(self.arrays["k_reference"]), float(self.arrays["tau"])
        self.n_levels = int(self.arrays["n_levels"])

    def of(self, level, name):
        return self.arrays[f"L{level}/{name}"]

    def edges(self, level, name):
        order = np.lexsort((self.of(level, "src_neighbor"), self.of(level, "dst_center")))
        return self.of(level, name)[order]


@pytest.fixture(scope="module")
def goldens(shared_data):
    return [Golden(path) for path in golden_pairs(shared_data)]


def walk(golden):
    network = import_reference_weights(golden.path.with_suffix(".pth"), golden.features)
    predict = LanderScorer(network, "cpu")
    rules = Rules(golden.k_reference - 1, golden.tau, as_released=True)
    points = golden.arrays["features"]
    points = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    # The files hold so many levels, though the released loop may have gone on.
    steps = list(islice(walk_levels(points, predict, rules), golden.n_levels))
    assert len(steps) == golden.n_levels
    return predict, steps


def test_every_level_has_the_released_codes_numbers(goldens):
    for golden in goldens:
        predict, steps = walk(golden)
        for level, step in enumerate(steps):
            close = {"atol": TOLERANCE, "rtol": 0, "err_msg": f"{golden.path.name} level {level}"}
            by_index = np.argsort(step.graph.neighbours, axis=1)

            def edges(array, by_index=by_index):
                return np.take_along_axis(array, by_index, axis=1).ravel()

            np.testing.assert_array_equal(
                edges(step.graph.neighbours), golden.edges(level, "src_neighbor")
            )
            np.testing.assert_allclose(step.nodes.identity, golden.of(level, "features"), **close)
            average = golden.of(level, "cluster_features")
            np.testing.assert_allclose(step.nodes.average, average, **close)
            affinity = golden.edges(level, "affinity")
            np.testing.assert_allclose(edges(step.graph.affinity), affinity, **close)
            encoded = predict.encode(step.graph, step.nodes)
            np.testing.assert_allclose(encoded, golden.of(level, "conv_features"), **close)
            probability = golden.edges(level, "prob")
            np.testing.assert_allclose(edges(step.scores.linkage), probability, **close)
            density = golden.of(level, "pred_density")
            np.testing.assert_allclose(step.scores.density, density, **close)


def test_every_level_is_decoded_as_the_released_code_does(goldens):
    for golden in goldens:
        of_point = np.arange(len(golden.arrays["features"]))
        for level, step in enumerate(walk(golden)[1]):
            np.testing.assert_array_equal(step.labels, golden.of(level, "labels"))
            np.testing.assert_array_equal(step.peaks, golden.of(level, "peaks"))
            assert step.parents.n_edges == golden.of(level, "edges_added")
            assert step.stops_early == bool(golden.of(level, "early_stop_here"))
            of_point = step.labels[of_point]
            assert same_partition(of_point, golden.of(level, "global_labels"))


def test_ground_truth_density_is_the_released_codes_too(goldens):
    from hilander.graph.scores import score_by_labels

    for golden in goldens:
        for level, step in enumerate(walk(golden)[1]):
            if level == 0:
                truth = score_by_labels(step.graph, golden.arrays["labels"])
                np.testing.assert_allclose(
                    truth.density, golden.of(0, "true_density"), atol=TOLERANCE
                )


def test_the_public_api_gives_the_released_codes_partitions(goldens):
    for golden in goldens:
        model = HiLander.from_reference(
            golden.path.with_suffix(".pth"),
            k_reference=golden.k_reference,
            p_tau=golden.tau,
            features=golden.features,
            early_stop=False,
        )
        found = model.cluster(golden.arrays["features"])
        assert found.n_levels >= golden.n_levels
        for level in range(golden.n_levels):
            assert same_partition(found.labels(level), golden.of(level, "global_labels"))
            assert found.levels[level].stops_early == bool(golden.of(level, "early_stop_here"))
        np.testing.assert_allclose(found.density, golden.of(0, "pred_density"), atol=TOLERANCE)
        if not golden.of(golden.n_levels - 1, "edges_added"):
            assert found.n_levels == golden.n_levels


def test_early_stop_ends_where_the_released_code_ends(goldens):
    for golden in goldens:
        stops = [bool(golden.of(n, "early_stop_here")) for n in range(golden.n_levels)]
        model = HiLander.from_reference(
            golden.path.with_suffix(".pth"), p_tau=golden.tau, features=golden.features,
            k_reference=golden.k_reference, early_stop=True,
        )  # fmt: skip
        if any(stops):
            assert model.cluster(golden.arrays["features"]).n_levels == stops.index(True) + 1


def test_imported_weights_can_be_saved_and_loaded(goldens, tmp_path):
    golden = goldens[0]
    path = golden.path.with_suffix(".pth")
    model = HiLander.from_reference(path, features=golden.features, p_tau=golden.tau)
    again = HiLander.load(model.save(tmp_path / "model"))
    assert again.rules_ == model.rules_
    points = golden.arrays["features"]
    one, two = model.cluster(points), again.cluster(points)
    assert one.n_levels == two.n_levels
    np.testing.assert_array_equal(one.labels(), two.labels())
    np.testing.assert_array_equal(one.density, two.density)


# What follows needs no golden file: reference weights are made up.


def made_up_weights(dim=5, hidden=8, seed=0):
    generator = torch.Generator().manual_seed(seed)
    half = hidden // 2
    shapes = {
        "conv.0.gcn_layer.mlp.weight": (hidden, 2 * dim),
        "conv.0.gcn_layer.mlp.bias": (hidden,),
        "src_mlp.weight": (half, hidden),
        "src_mlp.bias": (half,),
        "dst_mlp.weight": (half, hidden),
        "dst_mlp.bias": (half,),
        "classifier_conn.0.weight": (half,),
        "classifier_conn.1.weight": (half, half),
        "classifier_conn.1.bias": (half,),
        "classifier_conn.2.weight": (half,),
        "classifier_conn.3.weight": (2, half),
        "classifier_conn.3.bias": (2,),
    }
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


@pytest.fixture
def weights_file(tmp_path):
    path = tmp_path / "weights.pth"
    torch.save(made_up_weights(), path)
    return path


def test_settings_are_read_off_the_shapes(weights_file):
    network = import_reference_weights(weights_file, "identity")
    assert isinstance(network, Lander)
    assert (network.settings.dim, network.settings.hidden) == (5, 8)
    assert network.settings.encoder == "convolution"


class Hostile:
    """Unpickling it would create a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize(
    "write", [torch.save, lambda what, path: path.write_bytes(pickle.dumps(what))]
)
def test_a_hostile_pickle_does_nothing(tmp_path, write):
    trap, path = tmp_path / "sprung", tmp_path / "weights.pth"
    write({**made_up_weights(), "extra": Hostile(trap)}, path)
    with pytest.raises(FileFormatError, match="is not a file of torch weights"):
        import_reference_weights(path, "identity")
    assert not trap.exists()
    pickle.loads(pickle.dumps(Hostile(trap)))
    assert trap.exists()  # it would have


def test_weights_cut_short_at_any_point_are_refused(weights_file):
    whole = weights_file.read_bytes()
    for length in range(0, len(whole), 83):
        weights_file.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match="is not a file of torch weights"):
            import_reference_weights(weights_file, "identity")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"weight": torch.zeros(2)}, "holds no reference LANDER weights"),
        ([1, 2], "holds no reference LANDER weights"),
        ({"src_mlp.weight": torch.zeros(2, 2)}, "neither an attention nor a convolution"),
        ({**made_up_weights(), "epoch": 3}, "holds 'epoch', which is not a tensor"),
        ({**made_up_weights(), "src_mlp.weight": torch.zeros(3, 3)}, "incomplete or mis-shaped"),
        ({**made_up_weights(), "classifier_conn.1.bias": torch.zeros(9)}, "incomplete or mis-shap"),
        ({**made_up_weights(), "conv.0.gcn_layer.mlp.weight": torch.zeros(4)}, "mis-shaped"),
        ({k: v for k, v in made_up_weights().items() if "dst" not in k}, "incomplete or mis-shape"),
    ],
)
def test_foreign_or_incomplete_weights_are_refused(tmp_path, content, message):
    torch.save(content, tmp_path / "w.pth")
    with pytest.raises(ModelError, match=message):
        import_reference_weights(tmp_path / "w.pth", "identity")


def test_the_input_features_have_to_fit(weights_file):
    with pytest.raises(ModelError, match="reads 5 values, not two features; use 'identity'"):
        import_reference_weights(weights_file, "concat")
    with pytest.raises(SettingError, match="did you mean 'concat'"):
        import_reference_weights(weights_file, "concatt")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileFormatError, match=r"none\.pth does not exist"):
        import_reference_weights(tmp_path / "none.pth", "concat")


def test_a_k_that_counts_only_the_node_itself_is_refused(weights_file):
    with pytest.raises(SettingError, match="k_reference=1 counts the node itself"):
        HiLander.from_reference(weights_file, k_reference=1)

"""What is known beforehand, on the command line; reviews are honoured and taught."""

import csv

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from hilander import Hierarchy
from hilander.cli.main import main
from hilander.explorer.review_log.store import REVIEW_FILE, Base, ReviewStore, state_folder
from hilander.synthetic.identities import make_identities


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A file of embeddings with ids, tracks and photos, and the run of it."""
    folder = tmp_path_factory.mktemp("known")
    X, y = make_identities(n_identities=16, size=8, dim=16, spread=0.35, seed=0)
    n = len(X)
    ids = [f"face {row}" for row in range(n)]
    photo = ["" if row % 2 else f"photo {row // 8}" for row in range(n)]
    table = {"id": ids, "features": list(X), "photo": photo, "label": y}
    pyarrow.parquet.write_table(pa.table(table), folder / "faces.parquet")
    assert main(["cluster", str(folder / "faces.parquet"), "-o", str(folder / "free")]) == 0
    return folder, ids, Hierarchy.load(folder / "free").labels()


def cluster(folder, name, *options):
    command = ["cluster", str(folder / "faces.parquet"), "-o", str(folder / name), *options]
    assert main([str(one) for one in command]) == 0
    return Hierarchy.load(folder / name)


def write_pairs(path, pairs, header=("id_a", "id_b")):
    with open(path, "w", newline="") as stream:
        csv.writer(stream).writerows([header, *pairs])
    return path


def against(labels):
    """Two points of one cluster, and one of another."""
    first, second = np.flatnonzero(labels == labels[0])[:2]
    return int(first), int(second), int(np.flatnonzero(labels != labels[0])[0])


def test_pairs_columns_and_labels_hold(files, tmp_path, capsys):
    folder, ids, free = files
    a, b, c = against(free)
    together = write_pairs(tmp_path / "together.csv", [(ids[a], ids[c])])
    apart = write_pairs(tmp_path / "apart.csv", [(ids[a], ids[b])])
    known = write_pairs(tmp_path / "known.csv", [(ids[3], "x"), (ids[90], "x")], ("id", "label"))
    found = cluster(
        folder, "bound", "--together", together, "--apart", apart, "--apart-column", "photo",
        "--known-labels", known,
    )  # fmt: skip
    labels = found.labels()
    assert labels[a] == labels[c] != labels[b]
    assert labels[3] == labels[90]
    photo = np.arange(0, len(ids), 2) // 8
    for one in np.unique(photo):
        members = labels[::2][photo == one]
        assert len(np.unique(members)) == len(members)
    assert found.constraints.count_broken(labels) == {"together": 0, "apart": 0}
    printed = capsys.readouterr().out
    assert "pairs: 1 together, 1 apart" in printed
    assert "16 groups apart, 2 labels" in printed.replace("17 groups", "16 groups")


def test_a_contradiction_is_refused_with_its_chain(files, tmp_path, capsys):
    folder, ids, _ = files
    together = write_pairs(tmp_path / "together.csv", [(ids[0], ids[1]), (ids[1], ids[2])])
    apart = write_pairs(tmp_path / "apart.csv", [(ids[0], ids[2])])
    command = ["cluster", folder / "faces.parquet", "-o", tmp_path / "run"]
    options = ["--together", together, "--apart", apart]
    assert main([str(one) for one in command + options]) == 2
    assert "face 0 = face 1, face 1 = face 2, but face 0 ≠ face 2" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def review(run, actions):
    """Write the review of a run, as the explorer does."""
    hierarchy = Hierarchy.load(run)
    table = pyarrow.parquet.read_table(run / "clusters.parquet")
    ids = [str(one) for one in table["id"].to_pylist()]
    store = ReviewStore(state_folder(run) / REVIEW_FILE)
    base = Base(0, "some", hierarchy.n_clusters(), ids, hierarchy.labels())
    number = store.add_base(base)
    for kind, payload in actions:
        store.append(number, kind, payload)
    store.close()


def test_a_run_over_a_reviewed_one_keeps_what_was_decided(files, tmp_path, capsys):
    folder, _, free = files
    a, b, c = against(free)
    run = tmp_path / "run"
    command = ["cluster", str(folder / "faces.parquet"), "-o", str(run)]
    assert main(command) == 0
    merge = {"groups": [int(free[a]), int(free[c])], "must": [[a, c]]}
    split = {"group": int(free[a]), "parts": [[b]], "cannot": [[a, b]]}
    review(run, [("split", split), ("merge", merge)])
    assert main(command) == 0
    labels = Hierarchy.load(run).labels()
    assert labels[a] == labels[c] != labels[b]
    assert f"review of {run}: 2 decisions on pairs hold" in capsys.readouterr().out
    assert main([*command, "--no-review"]) == 0
    np.testing.assert_array_equal(Hierarchy.load(run).labels(), free)
    other = tmp_path / "other"
    assert main([*command[:-1], str(other), "--review", str(run)]) == 0
    np.testing.assert_array_equal(Hierarchy.load(other).labels(), labels)


def test_clusters_that_a_review_made_keep_their_numbers(files, tmp_path, capsys):
    folder, _, _ = files
    split_file(folder, tmp_path, 100)
    run = tmp_path / "run"
    command = ["cluster", str(tmp_path / "old.parquet"), "-o", str(run)]
    assert main(command) == 0
    labels = Hierarchy.load(run).labels()
    group, n_clusters = int(np.bincount(labels).argmax()), int(labels.max()) + 1
    members = np.flatnonzero(labels == group)
    parted, stays = members[1::-1].tolist(), members[2:]
    pairs = [[one, int(row)] for one in parted for row in stays] + [parted]
    parts = [[one] for one in parted]
    review(run, [("split", {"group": group, "parts": parts, "cannot": pairs})])
    for again in (["update", str(run), str(tmp_path / "new.parquet")], command):
        assert main(again) == 0
        found = Hierarchy.load(run)
        found = found.cluster_ids[found.labels()]
        assert found[parted].tolist() == [n_clusters, n_clusters + 1]
        assert (found[stays] == group).all()


def test_clusters_of_different_names_stay_apart(files, tmp_path, capsys):
    folder, ids, free = files
    a, b = np.flatnonzero(free == free[0])[:2].tolist()
    run = tmp_path / "run"
    command = ["cluster", str(folder / "faces.parquet"), "-o", str(run)]
    assert main(command) == 0
    parted = int(free.max()) + 1
    named = [
        ("split", {"group": int(free[a]), "parts": [[b]]}),
        ("name", {"group": int(free[a]), "name": "Ada", "head": a}),
        ("name", {"group": parted, "name": "Bo", "head": b}),
    ]
    review(run, named)
    assert main(command) == 0
    labels = Hierarchy.load(run).labels()
    assert labels[a] != labels[b]
    capsys.readouterr()
    together = write_pairs(tmp_path / "together.csv", [(ids[a], ids[b])])
    assert main([*command, "--together", str(together)]) == 0
    assert f"{ids[b]} has another name" in capsys.readouterr().out


def test_decisions_that_were_undone_are_not_held(files, tmp_path, capsys):
    folder, _, free = files
    a, b, _ = against(free)
    run = tmp_path / "run"
    command = ["cluster", str(folder / "faces.parquet"), "-o", str(run)]
    assert main(command) == 0
    split = {"group": int(free[a]), "parts": [[b]], "cannot": [[a, b]]}
    review(run, [("split", split), ("undo", {})])
    assert main(command) == 0
    np.testing.assert_array_equal(Hierarchy.load(run).labels(), free)


def split_file(folder, place, n_first):
    """The first rows of the file, and the others."""
    table = pyarrow.parquet.read_table(folder / "faces.parquet")
    for name, part in (("old", table[:n_first]), ("new", table[n_first:])):
        pyarrow.parquet.write_table(part, place / f"{name}.parquet")


def test_an_update_holds_what_was_given_to_the_run_and_its_review(files, tmp_path, capsys):
    folder, ids, _ = files
    split_file(folder, tmp_path, 100)
    run = tmp_path / "run"
    known = write_pairs(tmp_path / "known.csv", [(ids[3], "x"), (ids[90], "x")], ("id", "label"))
    command = ["cluster", str(tmp_path / "old.parquet"), "-o", str(run)]
    assert main([*command, "--apart-column", "photo", "--known-labels", str(known)]) == 0
    labels = Hierarchy.load(run).labels()
    a, b, _ = against(labels)
    c = int(np.flatnonzero(labels == labels[40])[0])
    merge = {"groups": [int(labels[a]), int(labels[c])], "must": [[a, c]]}
    split = {"group": int(labels[a]), "parts": [[b]], "cannot": [[a, b]]}
    wrong = {"group": int(labels[3]), "parts": [[90]], "cannot": [[3, 90]]}
    review(run, [("split", wrong), ("split", split), ("merge", merge)])
    later = write_pairs(tmp_path / "later.csv", [(ids[110], "x")], ("id", "label"))
    apart = write_pairs(tmp_path / "apart.csv", [(ids[126], ids[127])])
    capsys.readouterr()
    update = ["update", str(run), str(tmp_path / "new.parquet"), "--known-labels", str(later)]
    assert main([*update, "--apart", str(apart)]) == 0
    said = capsys.readouterr()
    assert f"review of {run}: 3 decisions on pairs hold" in said.out
    assert "1 decisions of the review contradict what else is known" in said.err
    assert "face 3 and face 90 were reviewed as different" in said.err
    found = Hierarchy.load(run)
    for level in range(found.n_levels):
        broken = found.constraints.count_broken(found.labels(level))
        assert broken == {"together": 0, "apart": 0}
    labels = found.labels()
    assert labels[a] == labels[c] != labels[b]
    assert labels[3] == labels[90] == labels[110]
    assert labels[126] != labels[127]
    for photo in range(16):
        members = labels[np.arange(0, 8, 2) + 8 * photo]
        assert len(np.unique(members)) == 4
    # A decision that is undone holds no longer; without the review, none of them does.
    assert main(["update", str(run), "--apart", str(apart), "--no-review"]) == 0
    held = Hierarchy.load(run).constraints
    assert held.component[a] != held.component[c]
    assert held.component[3] == held.component[110]


def test_an_update_says_which_columns_the_new_items_lack(files, tmp_path, capsys):
    folder, ids, _ = files
    split_file(folder, tmp_path, 100)
    run = tmp_path / "run"
    command = ["cluster", str(tmp_path / "old.parquet"), "-o", str(run), "--apart-column", "photo"]
    assert main(command) == 0
    bare = pyarrow.parquet.read_table(tmp_path / "new.parquet").drop_columns(["photo"])
    pyarrow.parquet.write_table(bare, tmp_path / "bare.parquet")
    assert main(["update", str(run), str(tmp_path / "bare.parquet")]) == 0
    assert "apart column photo: unknown for the new items" in capsys.readouterr().out
    together = write_pairs(tmp_path / "pairs.csv", [(ids[100], ids[108])])
    assert main(["update", str(run), "--together", str(together)]) == 0
    labels = Hierarchy.load(run).labels()
    assert labels[100] == labels[108]
    assert main(["update", str(run), "--apart-column", "photo"]) == 2
    assert "--apart-column photo needs a file of embeddings" in capsys.readouterr().err


def test_answers_are_training_evidence(files, tmp_path, monkeypatch, capsys):
    """Without labels the corrected clusters are identities; pairs give labels to others."""
    folder, ids, free = files
    run = tmp_path / "run"
    command = ["cluster", str(folder / "faces.parquet"), "-o", str(run)]
    assert main(command) == 0
    a, b, c = against(free)
    merge = {"groups": [int(free[a]), int(free[c])], "must": [[a, c]]}
    other = int(np.flatnonzero(~np.isin(free, [free[a], free[c]]))[0])
    apart = {"cannot": [[a, other]]}
    review(run, [("merge", merge), ("link", apart)])
    seen = {}

    def fit(self, X, y, *, checkpoint=None, constraints=None):
        seen.update(y=np.asarray(y), constraints=constraints)
        raise KeyboardInterrupt

    monkeypatch.setattr("hilander.HiLander.fit", fit)
    X = pyarrow.parquet.read_table(folder / "faces.parquet").select(["id", "features"])
    pyarrow.parquet.write_table(X, tmp_path / "bare.parquet")
    pairs = write_pairs(
        tmp_path / "pairs.csv", [(ids[a], ids[b], "must")], ("id_a", "id_b", "link")
    )
    train = ["train", str(tmp_path / "bare.parquet"), "-o", str(tmp_path / "model")]
    main([*train, "--review", str(run), "--pairs", str(pairs)])
    named = np.isin(free, [free[a], free[c], free[other]])
    np.testing.assert_array_equal(seen["y"] >= 0, named)
    assert seen["y"][a] == seen["y"][c] != seen["y"][other]
    assert seen["constraints"].component[a] == seen["constraints"].component[b]
    assert "identities to learn from: 2, as the answers name them" in capsys.readouterr().out


def test_a_run_without_a_review_cannot_teach(files, tmp_path, capsys):
    folder, _, _ = files
    train = ["train", str(folder / "faces.parquet"), "-o", str(tmp_path / "model")]
    assert main([*train, "--review", str(folder / "free")]) == 2
    assert "has no review" in capsys.readouterr().err


def test_labels_are_matched_by_the_column_that_holds_the_ids(files, tmp_path, capsys):
    folder, ids, _ = files
    _, y = make_identities(n_identities=16, size=8, dim=16, spread=0.35, seed=0)
    order = np.random.default_rng(0).permutation(len(ids))
    rows = [(ids[row], y[row]) for row in order]
    labels = write_pairs(tmp_path / "labels.csv", rows, ("photo_name", "person"))
    score = ["score", str(folder / "free"), "--labels", str(labels), "--labels-column", "person"]
    assert main([*score, "--json"]) == 0
    by_column = capsys.readouterr()
    assert "labels matched by id (column photo_name of labels.csv)" in by_column.err
    assert main([*score, "--json", "--label-id-column", "photo_name"]) == 0
    assert capsys.readouterr().out == by_column.out
    table = pa.table({"photo_name": [one for one, _ in rows], "label": [one for _, one in rows]})
    pyarrow.parquet.write_table(table, tmp_path / "labels.parquet")
    score = ["score", str(folder / "free"), "--json", "--labels"]
    assert main([*score, str(tmp_path / "labels.parquet")]) == 0
    assert capsys.readouterr().out == by_column.out
    np.save(tmp_path / "y.npy", y)
    assert main([*score, str(tmp_path / "y.npy")]) == 0
    in_order = capsys.readouterr()
    assert in_order.out == by_column.out
    assert "labels matched by row order: y.npy has no ids" in in_order.err


@pytest.mark.filterwarnings("always")
def test_empty_text_labels_are_not_scored(files, tmp_path, capsys):
    folder, ids, _ = files
    _, y = make_identities(n_identities=16, size=8, dim=16, spread=0.35, seed=0)
    names = ["" if row < 4 else f"person {label}" for row, label in enumerate(y)]
    rows = list(zip(ids, names, strict=True))
    labels = write_pairs(tmp_path / "labels.csv", rows, ("id", "label"))
    assert main(["score", str(folder / "free"), "--labels", str(labels)]) == 0
    assert "4 of 128 labels are empty, NaN or None, which means unknown" in capsys.readouterr().err


def test_a_table_without_ids_says_that_rows_are_numbered(files, tmp_path, capsys):
    folder, _, _ = files
    table = pyarrow.parquet.read_table(folder / "faces.parquet").rename_columns(
        ["face", "features", "photo", "label"]
    )
    pyarrow.parquet.write_table(table, tmp_path / "bare.parquet")
    command = ["cluster", str(tmp_path / "bare.parquet"), "-o", str(tmp_path / "run")]
    assert main(command) == 0
    printed = capsys.readouterr().err
    assert "bare.parquet has no column id, so rows are numbered from 0" in printed
    assert "one of face, photo, name it with --id-column" in printed
    assert main([*command, "--id-column", "face"]) == 0
    assert "numbered" not in capsys.readouterr().err

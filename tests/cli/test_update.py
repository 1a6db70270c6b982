"""`hilander update`, and ids that survive `hilander cluster`."""

import numpy as np
import pyarrow.parquet
import pytest

from hilander.cli.main import main
from hilander.synthetic.identities import make_identities


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("update")
    X, y = make_identities(n_identities=25, size=14, dim=24, spread=0.5, seed=3)
    ids = np.array([f"p{row}" for row in range(len(X))])
    np.savez(folder / "old.npz", features=X[:300], ids=ids[:300], labels=y[:300])
    np.savez(folder / "new.npz", features=X[300:], ids=ids[300:], labels=y[300:])
    np.savez(folder / "all.npz", features=X[::-1], ids=ids[::-1])
    (folder / "gone.csv").write_text("id\np1\np2\n")
    return folder


@pytest.fixture
def run(files, tmp_path):
    assert main(["cluster", str(files / "old.npz"), "-o", str(tmp_path / "run"), "--quiet"]) == 0
    return tmp_path / "run"


def clusters_of(run):
    table = pyarrow.parquet.read_table(run / "clusters.parquet").to_pydict()
    return dict(zip(table["id"], table["cluster"], strict=True))


def test_a_run_is_updated_and_says_what_changed(files, run, capsys):
    before = clusters_of(run)
    arguments = ["update", str(run), str(files / "new.npz"), "--remove", str(files / "gone.csv")]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "50 items added, 2 removed: 348 items in" in said
    after = clusters_of(run)
    assert "p1" not in after
    assert "p340" in after
    assert np.mean([after[one] == before[one] for one in after if one in before]) > 0.98
    changes = pyarrow.parquet.read_table(run / "changes.parquet").to_pydict()
    assert changes["change"].count("left") == 2
    assert (
        main(["score", str(run), "--labels", str(files / "old.npz")]) != 0
    )  # new items lack labels


def test_clustering_again_keeps_the_ids(files, run, capsys):
    before = clusters_of(run)
    assert main(["cluster", str(files / "all.npz"), "-o", str(run)]) == 0
    assert "clusters keep their ids" in capsys.readouterr().out
    after = clusters_of(run)
    assert np.mean([after[one] == before[one] for one in before]) > 0.95
    assert main(["update", str(run), "--remove", str(files / "gone.csv"), "--quiet"]) == 0
    assert len(clusters_of(run)) == 348


def test_an_update_of_nothing_is_refused(run, files, capsys, tmp_path):
    assert main(["update", str(run)]) == 2
    assert "nothing to do" in capsys.readouterr().err
    assert main(["update", str(run), str(files / "old.npz")]) == 2
    assert "remove it first" in capsys.readouterr().err
    (tmp_path / "unknown.txt").write_text("somebody\n")
    assert main(["update", str(run), "--remove", str(tmp_path / "unknown.txt")]) == 2
    assert "has no item 'somebody'" in capsys.readouterr().err

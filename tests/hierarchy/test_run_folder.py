"""The run folder that commands write."""

import json

import numpy as np

from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.run_extras import RunExtras
from hilander.hierarchy.run_folder import RunContent, write_run
from hilander.hierarchy.run_log import RunLog
from hilander.hierarchy.scorers import LabelScorer
from hilander.synthetic.identities import make_identities


def test_a_run_folder_holds_hierarchy_graph_details_and_stages(tmp_path):
    X, y = make_identities(n_identities=6, size=8, dim=8, seed=0)
    ids = np.array([f"point-{row}" for row in range(len(X))])
    log = RunLog()
    steps = walk_levels(X, LabelScorer(y), Rules(k=4, p_tau=0.5))
    hierarchy = Hierarchy.of_steps(log.watch(steps))
    content = RunContent(hierarchy, {"input": "here"}, ids, RunExtras(columns={"label": y}))
    write_run(tmp_path / "run", content, log, as_csv=True)

    assert np.array_equal(Hierarchy.load(tmp_path / "run").labels(-1), hierarchy.labels(-1))
    details = json.loads((tmp_path / "run" / "run.json").read_text())
    assert details["input"] == "here"
    assert details["stages"] == log.stages
    assert details["stages"][-1]["stage"] == "write"
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"clusters.csv", "graph.npz", "items.parquet", "cluster_quality.parquet"} <= names


def test_clusters_csv_is_written_only_on_request(tmp_path):
    X, y = make_identities(n_identities=3, size=6, dim=8, seed=0)
    log = RunLog()
    steps = walk_levels(X, LabelScorer(y), Rules(k=3, p_tau=0.5))
    hierarchy = Hierarchy.of_steps(log.watch(steps))
    write_run(tmp_path / "run", RunContent(hierarchy, {}, None, RunExtras()), log)
    assert not (tmp_path / "run" / "clusters.csv").exists()

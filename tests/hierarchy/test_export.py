import json

import numpy as np
import pyarrow.parquet
import pytest

from hilander.errors import OutputError, SettingError
from hilander.hierarchy.export import quote_newick


class NewickReader:
    """Reads a Newick tree into (name, length, children)."""

    def __init__(self, text):
        self.text, self.at = text, 0

    def tree(self):
        node = self.node()
        assert self.text[self.at :] == ";"
        return node

    def node(self):
        children = []
        if self.text[self.at] == "(":
            while self.text[self.at] in "(,":
                self.at += 1
                children.append(self.node())
            assert self.text[self.at] == ")"
            self.at += 1
        name, length = self.name(), None
        if self.text[self.at] == ":":
            self.at += 1
            length = float(self.name())
        return name, length, children

    def name(self):
        start = self.at
        if self.text[start] != "'":
            while self.text[self.at] not in "(),:;'":
                self.at += 1
            return self.text[start : self.at]
        letters = []
        self.at += 1
        while True:
            if self.text.startswith("''", self.at):
                letters.append("'")
                self.at += 2
            elif self.text[self.at] == "'":
                self.at += 1
                return "".join(letters)
            else:
                letters.append(self.text[self.at])
                self.at += 1


def leaves(node):
    name, _, children = node
    return [leaf for child in children for leaf in leaves(child)] if children else [name]


AWKWARD = [
    "a b",
    "it's",
    "(x)",
    "p:q",
    "semi;",
    "comma,",
    "under_score",
    "[c]",
    "",
    "''",
    "日本",
    '"',
]


def test_newick_holds_every_partition(hierarchy):
    name, _, finals = NewickReader(hierarchy.to_newick()).tree()
    assert name == "root"
    at_level = finals
    for level in reversed(range(hierarchy.n_levels)):
        found = np.full(hierarchy.n_points, -1)
        for cluster in at_level:
            assert cluster[1] == 1
            assert cluster[0].startswith(f"L{level}_")
            found[[int(leaf) for leaf in leaves(cluster)]] = int(cluster[0].split("_")[1])
        np.testing.assert_array_equal(found, hierarchy.labels(level))
        at_level = [child for cluster in at_level for child in cluster[2]]
    assert sorted(int(point[0]) for point in at_level) == list(range(hierarchy.n_points))


def test_newick_names_with_a_meaning_of_their_own_survive(hierarchy):
    ids = [AWKWARD[i] if i < len(AWKWARD) else f"p{i}" for i in range(hierarchy.n_points)]
    tree = NewickReader(hierarchy.to_newick(ids=ids)).tree()
    assert sorted(leaves(tree)) == sorted(ids)


@pytest.mark.parametrize("name", AWKWARD)
def test_a_quoted_name_reads_back(name):
    assert NewickReader(quote_newick(name) + ";").name() == name


def test_a_plain_name_is_not_quoted():
    assert quote_newick("img42.png") == "img42.png"


def test_json_holds_everything(hierarchy, tmp_path):
    text = hierarchy.to_json(tmp_path / "tree.json")
    assert (tmp_path / "tree.json").read_text(encoding="utf-8") == text
    content = json.loads(text)
    assert content["n_points"] == hierarchy.n_points
    assert len(content["levels"]) == hierarchy.n_levels
    for stored, level in zip(content["levels"], hierarchy.levels, strict=True):
        assert (stored["n_nodes"], stored["n_clusters"]) == (level.n_nodes, level.n_clusters)
        for name in ("labels", "peaks", "parent"):
            assert stored[name] == getattr(level, name).tolist()
        np.testing.assert_allclose(stored["density"], level.density, atol=1e-6)
        linkage = np.array([np.nan if p is None else p for p in stored["linkage"]])
        np.testing.assert_allclose(linkage, level.linkage, atol=1e-6)
        assert stored["stops_early"] is bool(level.stops_early)


def test_parquet_reads_back_as_the_columns(hierarchy, tmp_path):
    ids = [f"photo {i}" for i in range(hierarchy.n_points)]
    path = hierarchy.to_parquet(tmp_path / "rows.parquet", ids)
    table = pyarrow.parquet.read_table(path)
    columns = hierarchy.to_columns(ids)
    assert table.column_names == list(columns)
    for name, column in columns.items():
        np.testing.assert_array_equal(table[name].to_numpy(), column)
    assert table["cluster"].type == "int64"
    assert table["is_peak"].type == "bool"


def test_newick_is_written_where_asked(hierarchy, tmp_path):
    text = hierarchy.to_newick(tmp_path / "tree.nwk")
    assert (tmp_path / "tree.nwk").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("export", ["to_newick", "to_parquet"])
def test_one_id_for_each_point_or_nothing_is_written(hierarchy, tmp_path, export):
    with pytest.raises(SettingError, match="got 1 ids"):
        getattr(hierarchy, export)(tmp_path / "x.parquet", ids=["only"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("export", ["to_newick", "to_parquet", "to_json"])
def test_a_place_that_cannot_be_written_is_named(hierarchy, tmp_path, export):
    with pytest.raises(OutputError, match=r"rows\.parquet"):
        getattr(hierarchy, export)(tmp_path / "nowhere" / "rows.parquet")

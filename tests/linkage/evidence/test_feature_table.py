from pathlib import Path

from hilander.linkage.evidence.feature_table import describe_features
from hilander.linkage.evidence.registry import FEATURES, FORMER_SCHEMA, GROUPS, schema_hash

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "edge-features.md"


def test_the_page_of_the_documentation_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == describe_features(), (
        "run python docs/figures/edge_features.py"
    )


def test_the_table_has_every_feature_in_the_order_of_the_columns():
    page = describe_features()
    lines = [line for line in page.splitlines() if line.startswith("| `")]
    assert [line.split("`")[1] for line in lines] == [one.name for one in FEATURES]
    assert all(one.formula in line for one, line in zip(FEATURES, lines, strict=True))
    assert [line[3:].lower() for line in page.splitlines() if line.startswith("## ")] == list(
        GROUPS
    )
    assert schema_hash() in page
    assert FORMER_SCHEMA in page


def test_a_range_is_an_interval_that_is_open_at_infinity():
    page = describe_features()
    assert "| `mutual` | 1 if i is in N(j), else 0 | [0, 1] |" in page
    assert "| `affinity` | s_ij | (−∞, 1] |" in page
    assert "| `mean_to_mean` | m_i · m_j | [−1, 1] |" in page
    assert "| `rank_ij` | log r_ij | [0, ∞) |" in page

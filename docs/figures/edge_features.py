"""Write docs/reference/edge-features.md: the registry of edge features as a page.

Run it from the repository: ``python docs/figures/edge_features.py``.
"""

from __future__ import annotations

from pathlib import Path

from hilander.linkage.evidence.feature_table import describe_features

TARGET = Path(__file__).resolve().parents[1] / "reference" / "edge-features.md"

if __name__ == "__main__":
    TARGET.write_text(describe_features(), encoding="utf-8")

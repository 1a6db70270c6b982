"""Draw docs/images/layers.svg: the layers of the package, from the contract in pyproject.toml.

Run it from the repository: ``python docs/figures/layers.py``. What a layer is for is the first
sentence of its docstring.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "docs" / "images" / "layers.svg"
# Sizes in pixels, and colours.
WIDTH, ROW, TOP, NAME = 860, 34, 40, 150
INK, FAINT, FILL, EDGE = "#1c2330", "#5b6575", "#eef2f8", "#c3ccda"


def read_layers() -> list[str]:
    """The layers of the whole package, from top to bottom."""
    with open(ROOT / "pyproject.toml", "rb") as stream:
        contracts = tomllib.load(stream)["tool"]["importlinter"]["contracts"]
    return next(list(one["layers"]) for one in contracts if one.get("containers") == ["hilander"])


def describe_layer(name: str) -> str:
    """The first sentence of a layer's docstring."""
    package = ROOT / "hilander" / name
    path = package / "__init__.py" if package.is_dir() else package.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n\n")[0].replace("\n", " ").replace("`", "").rstrip(".")


def draw() -> str:
    """The SVG: one box a layer, the top one first."""
    layers = read_layers()
    height = TOP + ROW * len(layers) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="sans-serif" role="img">',
        "<title>The layers of hilander</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="24" font-size="13" fill="{FAINT}">A layer imports itself and the layers '
        "below it.</text>",
    ]
    for number, layer in enumerate(layers):
        y = TOP + ROW * number
        parts += [
            f'<rect x="8" y="{y}" width="{WIDTH - 16}" height="{ROW - 5}" rx="4" fill="{FILL}" '
            f'stroke="{EDGE}"/>',
            f'<text x="20" y="{y + 19}" font-size="14" font-weight="bold" fill="{INK}">{layer}'
            "</text>",
            f'<text x="{NAME}" y="{y + 19}" font-size="13" fill="{INK}">'
            f"{escape(describe_layer(layer))}</text>",
        ]
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    TARGET.write_text(draw(), encoding="utf-8")

"""Hooks of the documentation's build."""

from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Replace an entry ``folder/*`` of the navigation by the pages of that folder, in order."""
    root = Path(config.docs_dir)
    for section in config.nav:
        for title, pages in section.items():
            if isinstance(pages, list):
                section[title] = [one for page in pages for one in expand(root, page)]
    return config


def expand(root: Path, page: Any) -> list[Any]:
    """The pages that an entry stands for; the index of a folder is named apart."""
    if not isinstance(page, str) or not page.endswith("/*"):
        return [page]
    folder = page.removesuffix("/*")
    found = sorted(path for path in (root / folder).glob("*.md") if path.name != "index.md")
    return [f"{folder}/{path.name}" for path in found]

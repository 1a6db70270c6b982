"""Hooks of the documentation's build."""

from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Replace a pattern in the navigation, such as ``results/*``, by the pages that match it."""
    root = Path(config.docs_dir)
    for section in config.nav:
        for title, pages in section.items():
            if isinstance(pages, list):
                section[title] = [one for page in pages for one in expand(root, page)]
    return config


def expand(root: Path, page: Any) -> list[Any]:
    """The pages that an entry stands for, in order."""
    if not isinstance(page, str) or "*" not in page:
        return [page]
    return [path.relative_to(root).as_posix() for path in sorted(root.glob(page))]

"""Write docs/reference/broken-files.md: odd and broken files, and what became of each.

The files are those of tests/embedders/broken_files.py. Each is written to a folder, which is then
embedded as `hilander embed` does, with an embedder that has no network. Run it from the repository,
with the extra hilander[heic]: ``python docs/figures/broken_files.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "docs" / "reference" / "broken-files.md"
HEAD = """# Odd and broken pictures

What `hilander embed` and `hilander group` make of files that a folder of pictures may hold. A file
that cannot be embedded is a row of `skipped.csv` with its reason, and the run goes on.
`python docs/figures/broken_files.py` wrote this page: it makes the files, embeds their folder, and
reads the result. The reasons after "is damaged" are those of Pillow.

| file | what it is | result |
|---|---|---|
"""


def describe_files() -> str:
    """Embed the folder of odd files, and give the page."""
    sys.path.insert(0, str(ROOT))
    from hilander.embedders.embedding import Destination, Source, embed
    from hilander.embedders.work import EmbeddingWork
    from hilander.io.paths import encode_name
    from tests.embedders.broken_files import FILES, OTHERS, READ_ONCE, write_broken_files
    from tests.embedders.fake_embedders import MeanColours

    with TemporaryDirectory() as name:
        folder = Path(name) / "pictures"
        folder.mkdir()
        write_broken_files(folder)
        beside = Path(name)
        destination = Destination(beside / "emb.parquet", beside / "skipped.csv")
        work = EmbeddingWork(beside / "cache", n_workers=1)
        outcome = embed(Source([folder]), destination, MeanColours(), work).outcome
    reasons = {skip.item: skip.reason for skip in outcome.skips}
    rows = []
    for file, meaning, *_ in [*FILES, *OTHERS]:
        text = encode_name(file)
        once = (file, meaning, READ_ONCE) in OTHERS
        result = reasons.get(text, "read once" if once else "embedded")
        rows.append(f"| `{shorten(text)}` | {meaning} | {escape(result)} |")
    return HEAD + "\n".join(rows) + "\n"


def shorten(text: str) -> str:
    """A name that fits in a table."""
    text = text.replace("\n", "\\n")
    return text if len(text) < 40 else f"{text[:10]}…{text[-10:]}"


def escape(text: str) -> str:
    """Text that Markdown shows as it is in a cell."""
    return text.replace("|", "\\|").replace("<", "\\<").replace("*", "\\*")


if __name__ == "__main__":
    TARGET.write_text(describe_files(), encoding="utf-8")

"""Draw ``docs/results/comparison.md`` and the table of the README from rows.

python -m benchmarks.render [--check]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.pseudo_labels import ROWS as PSEUDO_ROWS
from benchmarks.pseudo_labels import TEXT, format_pseudo_labels
from benchmarks.rows import ROOT, put_block
from benchmarks.rows import read_rows as read_plain_rows
from benchmarks.suite import CONFIG, ROWS, Suite, Table, read_suite
from hilander.comparison.methods import METHODS
from hilander.comparison.protocol import BUDGET
from hilander.comparison.rows import Row, latest_rows, read_rows
from hilander.comparison.tables import Summary, format_markdown, show_seconds, summarise_rows

PAGE = ROOT / "docs" / "results" / "comparison.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
NOT_YET = (
    "*`hilander` has not been measured by this protocol yet. "
    "[The comparison](docs/results/comparison.md) has the other methods.*"
)
# The default method's rows of these commits are older than merges by links.
FORMER_COMMITS = ("6994da7f3c",)
FORMER = (
    "The rows of `hilander (default)` were measured before clusters "
    "[merged by links]({how}default-method.md#merges-by-links), and while p_tau followed the sizes."
)
# Methods of the README's table: well-known ones, the best rivals, the paper's and the default.
README_METHODS = (
    "k-means", "HAC", "H-DBSCAN", "FINCH", "EVoC", "Infomap", "Leiden",
    "Hi-LANDER (paper)", "hilander (default)",
)  # fmt: skip
# File, name in the config, caption.
FIGURES = {
    "early-stop.png": (
        "early_stop",
        "Scores of the paper's model by level, after a brief training, with p_tau chosen on "
        "held-out identities. Both stopping points are marked.",
    ),
    "sensitivity.png": (
        "sensitivity",
        "Sensitivity of the paper's model, one setting varied at a time: k and p_tau when "
        "clustering, aggregation and encoder in training. Where p_tau is not varied, it is chosen "
        "on held-out identities.",
    ),
    "hierarchy-map.png": (
        "hierarchy",
        "The hierarchy of the default method on a map of some points (t-SNE): all points, and the "
        "peaks of each level. Images of the last peaks have a frame in the colour of their class.",
    ),
}


def render_page(suite: Suite, rows: Sequence[Row], pseudo: Sequence[dict[str, object]]) -> str:
    """The whole page ``docs/results/comparison.md``."""
    parts = [
        "# Comparison with rivals",
        *note_former(rows, "../how-it-works/"),
        "Measured: pairwise F, BCubed F, NMI and seconds of every method on three pairs of a "
        "training file and a test file with other identities. Command: `python -m benchmarks.suite "
        "run`. Rows: `benchmarks/results/comparison.jsonl`; `python -m benchmarks.render` draws "
        "this page from them. Every method was tuned on the training set alone, each with at most "
        f"{BUDGET} settings, by the mean of pairwise and BCubed F. "
        "[Rivals](../reference/rivals.md) describes each method. Cells are Fp / Fb / NMI, the "
        f"mean over {suite.seeds} seeds where the result depends on the seed.",
        "The pairs: omniglot has handwritten characters, embedded by a small CNN. flowers has "
        "kinds of flowers, embedded by EfficientNet. faces trains on CelebA and tests on LFW, "
        "whose size distribution differs; both are embedded by dlib. A plus after a commit means "
        "that files differed from the commit.",
    ]
    for table in suite.tables:
        parts += [f"## {table.title}", render_table(table, rows, pseudo)]
    captions = caption_figures(suite)
    if captions:
        parts.append("## Figures")
        parts += [f"![{text}](../images/{name})\n\n*{text}*" for name, text in captions.items()]
    for name in suite.datasets:
        some = rows_of(rows, name)
        if some:
            parts += [f"## All of {name}", _describe(some), format_markdown(summarise_rows(some))]
    return "\n\n".join(parts) + "\n"


def note_former(rows: Sequence[Row], how: str) -> list[str]:
    """A remark if rows of the default method are of a former one; `how` is the folder to link."""
    own = latest_rows([row for row in rows if row.method == "hilander (default)"])
    is_former = any(row.commit.rstrip("+") in FORMER_COMMITS for row in own)
    return [FORMER.format(how=how)] if is_former else []


def caption_figures(suite: Suite) -> dict[str, str]:
    """Captions of the figures that exist, by file."""
    return {
        file: f"{caption} Data: {suite.figures[name]}."
        for file, (name, caption) in FIGURES.items()
        if name in suite.figures and (ROOT / "docs" / "images" / file).is_file()
    }


def _describe(rows: Sequence[Row]) -> str:
    first = rows[-1]
    commits = ", ".join(sorted({row.commit for row in rows if row.commit}))
    return (
        f"{first.n:,} points of {first.d} features, data {first.dataset_hash}; {first.machine}; "
        f"commit {commits or 'unknown'}. Scores are mean ± standard deviation over seeds; settings "
        "are those tuned on the training set."
    )


def render_table(
    table: Table, rows: Sequence[Row], pseudo: Sequence[dict[str, object]] = ()
) -> str:
    """One table of the config as Markdown."""
    if table.kind == "pseudo-labels":
        return f"{TEXT}\n\n{format_pseudo_labels(pseudo)}"
    show = _show_seconds if table.kind == "seconds" else _show_scores
    header = "fit / predict seconds" if table.kind == "seconds" else "Fp / Fb / NMI"
    by_dataset = {
        name: {one.method: one for one in summarise_rows(rows_of(rows, name))}
        for name in table.datasets
    }
    methods = table.methods or tuple(METHODS)
    lines = [
        "| method | " + " | ".join(f"{name}<br>{header}" for name in table.datasets) + " |",
        "|---|" + "---|" * len(table.datasets),
    ]
    for method in methods:
        cells = [show(by_dataset[name].get(method)) for name in table.datasets]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _show_scores(one: Summary | None) -> str:
    if one is None:
        return "not run"
    if not one.n_runs:
        return f"*{one.error}*"
    return " / ".join(f"{one.mean(name):.3f}" for name in ("pairwise_f", "bcubed_f", "nmi"))


def _show_seconds(one: Summary | None) -> str:
    if one is None:
        return "not run"
    if not one.n_runs:
        return f"*{one.error}*"
    return f"{show_seconds(one.mean('fit_seconds'))} / {show_seconds(one.mean('predict_seconds'))}"


def rows_of(rows: Sequence[Row], dataset: str) -> list[Row]:
    """Latest rows of one data set. Of several versions of the data, the last measured counts."""
    some = [row for row in rows if row.dataset == dataset]
    if not some:
        return []
    return [row for row in latest_rows(some) if row.dataset_hash == some[-1].dataset_hash]


def render_readme(text: str, suite: Suite, rows: Sequence[Row]) -> str:
    """The README with a table of some measured methods between its marks."""
    if BEGIN not in text or END not in text:
        return text
    measured = {row.method for row in rows}
    methods = tuple(method for method in README_METHODS if method in measured)
    table = Table("scores", "", tuple(suite.datasets), methods)
    ours = any(METHODS[method].family == "ours" for method in methods)
    if not ours:
        return put_block(text, (BEGIN, END), NOT_YET)
    block = "\n\n".join([render_table(table, rows), *note_former(rows, "docs/how-it-works/")])
    return put_block(text, (BEGIN, END), block)


def render_all(config: Path = CONFIG) -> dict[Path, str]:
    """The content of every rendered file, by path."""
    suite = read_suite(config)
    rows = read_rows(ROWS) if ROWS.is_file() else []
    pages = {PAGE: render_page(suite, rows, read_plain_rows(PSEUDO_ROWS))}
    if README.is_file():
        pages[README] = render_readme(README.read_text(encoding="utf-8"), suite, rows)
    return pages


def main(arguments: list[str] | None = None) -> int:
    """Write the files, or with --check list those that differ from their rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, default=CONFIG)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args(arguments)
    drifted = []
    for path, text in render_all(args.config).items():
        if args.check:
            drifted += [path] if path.read_text(encoding="utf-8") != text else []
        else:
            path.write_text(text, encoding="utf-8")
    for path in drifted:
        print(f"{path.name} differs from its rows; run python -m benchmarks.render")
    return 1 if drifted else 0


if __name__ == "__main__":
    sys.exit(main())

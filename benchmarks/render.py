"""Draw ``docs/results.md`` and the README's table from rows.

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

PAGE = ROOT / "docs" / "results.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
NOT_YET = (
    "*Ours has not been measured by this protocol yet; [results](docs/results.md) has the others.*"
)
# File, name in the config, caption.
FIGURES = {
    "early-stop.png": (
        "early_stop",
        "The paper's model by level, trained briefly, p_tau chosen on held-out identities; both "
        "stopping points are marked.",
    ),
    "sensitivity.png": (
        "sensitivity",
        "Sensitivity of the paper's model, one setting varied at a time: k and p_tau when "
        "clustering, aggregation and encoder in training; p_tau, where it is not varied, as "
        "held-out identities choose it.",
    ),
    "hierarchy-map.png": (
        "hierarchy",
        "The default method's hierarchy on a map of some points (t-SNE): all points, and the peaks "
        "of each level; pictures of the last peaks are framed in the colour of their class.",
    ),
}


def render_page(suite: Suite, rows: Sequence[Row], pseudo: Sequence[dict[str, object]]) -> str:
    """The whole of ``docs/results.md``."""
    parts = [
        "# Results",
        "Drawn from `benchmarks/results/` by `python -m benchmarks.render`; measured by "
        "`python -m benchmarks.suite run`. Every method was tuned on the training set alone, each "
        f"with at most {BUDGET} settings, by the mean of pairwise and BCubed F; "
        "[what each method is](reference/rivals.md) says the rest. Cells are Fp / Fb / NMI, the "
        f"mean over {suite.seeds} seeds where the method varies. The pairs: omniglot is handwritten "
        "characters, other ones than in its training file (a small CNN); flowers is other kinds "
        "of flowers (EfficientNet); faces trains on CelebA and tests on LFW, another collection "
        "whose sizes are unlike (dlib). A plus behind a commit means that files differed from it.",
    ]
    for table in suite.tables:
        parts += [f"## {table.title}", render_table(table, rows, pseudo)]
    captions = caption_figures(suite)
    if captions:
        parts.append("## Figures")
        parts += [f"![{text}](images/{name})\n\n*{text}*" for name, text in captions.items()]
    for name in suite.datasets:
        some = rows_of(rows, name)
        if some:
            parts += [f"## All of {name}", _describe(some), format_markdown(summarise_rows(some))]
    return "\n\n".join(parts) + "\n"


def caption_figures(suite: Suite) -> dict[str, str]:
    """Captions of the figures that are there, by file, with the data set of each."""
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
        "are those tuned on train."
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
    """Latest rows of one data set; of several versions of it, the last measured."""
    some = [row for row in rows if row.dataset == dataset]
    if not some:
        return []
    return [row for row in latest_rows(some) if row.dataset_hash == some[-1].dataset_hash]


def render_readme(text: str, suite: Suite, rows: Sequence[Row]) -> str:
    """The README with its table drawn anew between the markers: the methods that have results."""
    if BEGIN not in text or END not in text:
        return text
    measured = {row.method for row in rows}
    methods = tuple(method for method in METHODS if method in measured)
    table = Table("scores", "", tuple(suite.datasets), methods)
    ours = any(METHODS[method].family == "ours" for method in methods)
    block = render_table(table, rows) if ours else NOT_YET
    return put_block(text, (BEGIN, END), block)


def render_all(config: Path = CONFIG) -> dict[Path, str]:
    """What every rendered file should hold."""
    suite = read_suite(config)
    rows = read_rows(ROWS) if ROWS.is_file() else []
    pages = {PAGE: render_page(suite, rows, read_plain_rows(PSEUDO_ROWS))}
    if README.is_file():
        pages[README] = render_readme(README.read_text(encoding="utf-8"), suite, rows)
    return pages


def main(arguments: list[str] | None = None) -> int:
    """Write the files, or with --check say whether they are as they should be."""
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

"""``hilander demo``: train on images of some characters, cluster images of other characters."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hilander.cli.inputs import add_quiet, add_wait
from hilander.io.files import EmbeddingFile
from hilander.io.locks import lock_output
from hilander.io.writing import check_output_folder, folder_writer, write_json

if TYPE_CHECKING:
    from hilander.estimator import HiLander
    from hilander.hierarchy.hierarchy import Hierarchy
    from hilander.metrics.report import Scores
    from hilander.synthetic.glyph_embedding import GlyphData

DEMO_KIND = "demo"


@dataclass(frozen=True)
class DemoSettings:
    """Settings of the demo. The model is the default one, without settings for these characters.

    Attributes
    ----------
    seed : int
    max_characters : int, optional
        Use at most this many characters.
    epochs : int, optional
        In place of the default number.
    """

    seed: int = 0
    max_characters: int | None = None
    epochs: int | None = None


@dataclass(frozen=True, eq=False)
class DemoResult:
    """Result of the demo, besides its files.

    Attributes
    ----------
    model : HiLander
    hierarchy : Hierarchy
        Of the test characters.
    baseline : ndarray of shape (n_test,)
        Clusters of the test characters by a cosine threshold.
    scores : dict of str to Scores
        The rows of the printed table.
    level_scores : list of Scores
    seconds : float
    """

    model: HiLander
    hierarchy: Hierarchy
    baseline: Any
    scores: dict[str, Scores]
    level_scores: list[Scores]
    seconds: float


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "demo",
        help="train on images of some characters and group images of others",
        description="Draw characters in many fonts, train a model on some characters, cluster the "
        "images of others, and write a folder with the data, the model, the run and a page of "
        "pictures. This takes a few minutes on two cores and downloads nothing.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        type=Path,
        default=Path("demo-run"),
        help="folder to write (default: demo-run)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="the same seed gives the same result (default: 0)"
    )
    add_wait(parser)
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the demo and print where its results are."""
    check_output_folder(args.output, DEMO_KIND)
    with lock_output(args.output, wait=args.wait):
        result = run_demo(args.output, DemoSettings(seed=args.seed), verbose=not args.quiet)
    if not args.quiet:
        from hilander.metrics.report import format_scores

        print(f"\n{format_scores(result.scores)}\n")
        print(f"done in {result.seconds:.0f} s; open {args.output / 'index.html'}")
        print(f"report:  {args.output / 'report.html'}")
        truth = args.output / "test.npz"
        print(f"explore: hilander explore {args.output / 'run'} --labels {truth}")
        print(f"score:   hilander score {args.output / 'run'} --labels {truth} --all-levels")
    return 0


def run_demo(folder: Path, settings: DemoSettings, *, verbose: bool = False) -> DemoResult:
    """Make the data, train, cluster, score, and write the folder, whole or not at all.

    Parameters
    ----------
    folder : Path
    settings : DemoSettings
    verbose : bool
        Print each step.

    Returns
    -------
    result : DemoResult
    """
    from hilander.cli.demo_page import write_page
    from hilander.explorer.report.writer import write_report
    from hilander.explorer.run.run_folder import Attachments
    from hilander.synthetic.glyph_embedding import make_glyph_data

    start = time.perf_counter()
    say = print if verbose else _print_nothing
    check_output_folder(folder, DEMO_KIND)
    with folder_writer(folder, DEMO_KIND) as inside:
        say("drawing characters in the installed fonts …", flush=True)
        data = make_glyph_data(settings.seed, settings.max_characters)
        write_data(data, inside)
        n_train, n_test = (len(np.unique(y)) for y in (data.train_labels, data.test_labels))
        say(f"  {len(data.train_ids):,} images of {n_train} characters to train on")
        say(f"  {len(data.test_ids):,} images of {n_test} other characters to group")
        say("training …", flush=True)
        model = train_model(data, settings, verbose=verbose)
        model.save(inside / "model")
        say("clustering the other characters …", flush=True)
        hierarchy = cluster_test(model, data, inside, folder)
        result = score_demo(model, hierarchy, data, start)
        write_json(inside / "scores.json", {n: s.to_dict() for n, s in result.scores.items()})
        write_page(result, data, inside)
        say("writing the report …", flush=True)
        write_report(inside / "run", inside / "report.html", Attachments(data.test_labels))
    return result


def write_data(data: GlyphData, folder: Path) -> None:
    """Write the input: train.npz, test.npz, and the images of the test points."""
    for name in ("train", "test"):
        np.savez(
            folder / f"{name}.npz",
            features=getattr(data, f"{name}_features"),
            labels=getattr(data, f"{name}_labels"),
            id=getattr(data, f"{name}_ids"),
        )
    np.save(folder / "thumbs.npy", data.test_thumbs)


def train_model(data: GlyphData, settings: DemoSettings, *, verbose: bool) -> HiLander:
    """Train the default model on the training characters."""
    from hilander.estimator import HiLander

    model = HiLander(epochs=settings.epochs, random_state=settings.seed, verbose=verbose)
    return model.fit(data.train_features, data.train_labels)


def cluster_test(model: HiLander, data: GlyphData, inside: Path, folder: Path) -> Hierarchy:
    """Cluster the test characters and write the run as `hilander cluster` does."""
    from hilander.cli.run_details import describe_run, make_extras
    from hilander.hierarchy.hierarchy import Hierarchy
    from hilander.hierarchy.run_folder import RunContent, write_run
    from hilander.hierarchy.run_log import RunLog

    log = RunLog()
    hierarchy = Hierarchy.of_steps(log.watch(model.walk(data.test_features, work=log.work)))
    file = EmbeddingFile(data.test_features, data.test_ids, data.test_labels, folder / "test.npz")
    rules = model.rules_
    settings = {
        "k": rules.k,
        "p_tau": rules.p_tau,
        "early_stop": rules.early_stop,
        "model": folder / "model",
    }
    details = describe_run(model, file, hierarchy, settings, log)
    extras = replace(make_extras(file, log), thumbs=data.test_thumbs)
    content = RunContent(hierarchy, details, file.ids, extras)
    write_run(inside / "run", content, log, as_csv=True)
    return hierarchy


def score_demo(model: HiLander, hierarchy: Hierarchy, data: GlyphData, start: float) -> DemoResult:
    """Score the run, and a cosine threshold that was chosen on the training characters."""
    from hilander.comparison.rivals.threshold import choose_threshold, cluster_by_threshold
    from hilander.metrics.report import score_clustering, score_levels

    preparation = model.preparation_
    known = preparation.apply_to_training_set(data.train_features)
    threshold = choose_threshold(known, data.train_labels)
    baseline = cluster_by_threshold(preparation.apply(data.test_features), threshold)
    levels = score_levels(hierarchy, data.test_labels)
    scores = {
        f"cosine >= {threshold:.2f}, connected": score_clustering(data.test_labels, baseline),
        "Hi-LANDER": levels[-1],
    }
    seconds = time.perf_counter() - start
    return DemoResult(model, hierarchy, baseline, scores, levels, seconds)


def _print_nothing(*_: Any, **__: Any) -> None:
    pass

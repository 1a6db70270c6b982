"""``hilander group``: from a folder of pictures or a table of texts to groups, in one command."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from hilander.cli import cluster, explore, update
from hilander.cli.embed_options import (
    add_embedder,
    add_source,
    add_work,
    describe_embedded,
    open_embedder,
    read_source,
    read_work,
)
from hilander.cli.inputs import PRETRAINED_NAME, add_device, find_model
from hilander.embeddings.labels import encode_labels
from hilander.io.digests import digest_file, list_digests
from hilander.io.files import EmbeddingFile, read_embeddings, write_table
from hilander.io.item_columns import PHOTO, read_item_columns
from hilander.io.writing import check_output_folder, read_json, write_atomically, write_json

_EMBEDDINGS_FILE, _SKIPPED_FILE, _STATE_FILE = "embeddings.parquet", "skipped.csv", "state.json"
_CERTAIN_FILE = "certain.csv"
# The embeddings that the run was made of; what is new is found by comparing.
_CLUSTERED_FILE = "clustered.parquet"

# Options of `hilander explore` that this command has too.
SERVING = ("host", "port", "token", "allow_host", "no_browser")


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "group",
        help="group the pictures of a folder or the texts of a table, and show the groups",
        description="Embed pictures or texts as `hilander embed` does, cluster them as `hilander "
        "cluster` does, and show the clusters as `hilander explore` does. The run folder is RUN; "
        "embeddings, their cache and skipped.csv are in RUN.embeddings. The same command on a "
        "folder that has changed embeds only what is new.",
        allow_abbrev=False,
    )
    add_source(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="RUN",
        type=Path,
        help="run folder to write (default: the name of the first PATH and .run, in the current "
        "folder)",
    )
    parser.add_argument(
        "-m",
        "--model",
        metavar="MODEL",
        default=PRETRAINED_NAME,
        help="model folder that clusters the embeddings (default: pretrained, the model that comes "
        "with hilander)",
    )
    parser.add_argument("--no-explore", action="store_true", help="write the run folder and end")
    add_embedder(parser)
    add_work(parser)
    explore.add_serving(parser)
    add_device(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Embed, cluster, and show."""
    output = args.output or default_output(args.paths)
    check_output_folder(output, "run")
    beside = output.with_name(f"{output.name}.embeddings")
    embeddings = embed_source(args, beside)
    cluster_if_changed(args, embeddings, output)
    if args.no_explore:
        return 0
    explored = parse_command(explore, [str(output)])
    served = {name: getattr(args, name) for name in SERVING}
    return explore.run(argparse.Namespace(**{**vars(explored), **served}))


def default_output(paths: list[Path]) -> Path:
    """The run folder of a source that no other is named for."""
    first = paths[0].resolve()
    name = first.name if first.is_dir() else first.stem
    return Path(f"{name or 'pictures'}.run")


def embed_source(args: argparse.Namespace, folder: Path) -> Path:
    """Embed what is new, and give the file of all embeddings."""
    from hilander.embedders.embedding import Destination, embed

    source = read_source(args)
    embedder = open_embedder(args, source)
    destination = Destination(folder / _EMBEDDINGS_FILE, folder / _SKIPPED_FILE)
    embedded = embed(source, destination, embedder, read_work(args, folder))
    if not args.quiet:
        print(describe_embedded(embedded, embedder, destination.skipped))
    return destination.embeddings


def cluster_if_changed(args: argparse.Namespace, embeddings: Path, output: Path) -> None:
    """Cluster the embeddings, unless the run is of the same embeddings and model."""
    state_file = embeddings.with_name(_STATE_FILE)
    model = find_model(args.model)
    state = {
        "embeddings": digest_file(embeddings),
        "model": list_digests(model, without="") if model.is_dir() else {},
    }
    if output.is_dir() and state_file.is_file() and read_json(state_file) == state:
        if not args.quiet:
            print(f"nothing has changed: {output} is kept")
        return
    is_same_model = state_file.is_file() and read_json(state_file).get("model") == state["model"]
    if not (is_same_model and update_run(args, embeddings, output)):
        cluster_all(args, embeddings, output)
    clustered = embeddings.with_name(_CLUSTERED_FILE)
    with write_atomically(clustered) as temporary:
        shutil.copyfile(embeddings, temporary)
    write_json(state_file, state)


def cluster_all(args: argparse.Namespace, embeddings: Path, output: Path) -> None:
    """Cluster all embeddings."""
    options = ["-m", args.model, "-o", str(output), "--device", args.device]
    options += ["--quiet"] if args.quiet else []
    options += know_faces(embeddings, args.quiet)
    cluster.run(parse_command(cluster, [str(embeddings), *options]))


def update_run(args: argparse.Namespace, embeddings: Path, output: Path) -> bool:
    """Update a run with what is new and gone; clusters keep their ids.

    Returns
    -------
    was_updated : bool
        False if there is no run to update, if little of it would stay, or if the embeddings are
        of faces, which are clustered with what is known of them.
    """
    from hilander.collection.collection import Collection
    from hilander.collection.known import News
    from hilander.explorer.review.knowledge import find_review, read_review

    before = embeddings.with_name(_CLUSTERED_FILE)
    if not before.is_file() or not output.is_dir():
        return False
    items = read_item_columns(embeddings)
    if PHOTO in items.columns:
        return False
    old, new = read_embeddings(before), read_embeddings(embeddings)
    change = compare_embeddings(old, new)
    collection = Collection.open(output)
    is_same_run = old.ids is not None and set(collection.ids.tolist()) == set(old.ids.tolist())
    if change is None or not is_same_run:
        return False
    collection.model.device = args.device
    columns = {name: values[change.added] for name, values in items.columns.items()}
    remove = change.removed if len(change.removed) else None
    review = None if find_review(output) is None else read_review(output)
    known = (
        None
        if review is None
        else News(review=(review.must, review.cannot), clusters=review.clusters)
    )
    if not len(change.added):
        done = collection.remove(change.removed, known=known)
    else:
        ids = np.asarray(new.ids)[change.added]
        done = collection.update(
            new.features[change.added], ids, remove=remove, columns=columns, known=known
        )
    if not args.quiet:
        print(update.describe_update(done, len(collection), collection.hierarchy().n_clusters()))
    return True


class Change(NamedTuple):
    """How a file of embeddings differs from an earlier one.

    Parameters
    ----------
    added : ndarray of int
        Rows of the new file whose id is new, or has another embedding now.
    removed : ndarray
        Ids of the old file that are gone, or have another embedding now.
    """

    added: Any
    removed: Any


def compare_embeddings(old: EmbeddingFile, new: EmbeddingFile) -> Change | None:
    """What was added and removed; None if the files have nothing in common."""
    if old.ids is None or new.ids is None or old.features.shape[1] != new.features.shape[1]:
        return None
    row_of = {name: row for row, name in enumerate(old.ids.tolist())}
    rows = np.array([row_of.get(name, -1) for name in new.ids.tolist()])
    known = np.flatnonzero(rows >= 0)
    same = known[(old.features[rows[known]] == new.features[known]).all(axis=1)]
    if not len(same) or len(row_of) < len(old.ids):
        return None
    added = np.setdiff1d(np.arange(len(rows)), same)
    removed = np.setdiff1d(np.arange(len(old.ids)), rows[same])
    return Change(added, np.asarray(old.ids)[removed])


def know_faces(embeddings: Path, quiet: bool) -> list[str]:
    """Options of `hilander cluster` on what is known of faces; none for other embeddings."""
    items = read_item_columns(embeddings)
    photos = items.columns.get(PHOTO)
    if photos is None:
        return []
    apart = ["--apart-column", PHOTO]
    if items.embedder != "faces":  # another network has another scale of distances
        return apart
    from hilander.embedders.faces.certain_pairs import find_certain_pairs

    file = read_embeddings(embeddings)
    pairs = find_certain_pairs(file.features, encode_labels(photos)[0])
    ids = np.arange(len(file.features)) if file.ids is None else file.ids
    certain = embeddings.with_name(_CERTAIN_FILE)
    write_table(certain, {"id_a": ids[pairs[:, 0]], "id_b": ids[pairs[:, 1]]})
    if len(pairs) and not quiet:
        print(f"{len(pairs):,} pairs of faces are certain to be of one person: {certain}")
    return [*apart, "--together", str(certain)] if len(pairs) else apart


def parse_command(command: ModuleType, arguments: list[str]) -> argparse.Namespace:
    """The options of another command, with its defaults."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    command.add_parser(parser.add_subparsers())
    name = command.__name__.rpartition(".")[2]
    return parser.parse_args([name, *arguments])

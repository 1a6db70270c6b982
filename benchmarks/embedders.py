"""Throughput and memory of `hilander embed`, and the distances of dlib's faces.

``python -m benchmarks.embedders throughput`` embeds photographs with each embedder that is
installed, by its bare network and by the whole pipeline, in turns. ``memory`` embeds 50,000
pictures and records the memory of all processes on the way; then it embeds 200,000 files with the
same contents, twice. ``distances`` counts the pairs of different people that are near each other.
Each appends rows to ``benchmarks/results/embedders.jsonl``; ``render`` draws
``docs/results/embedders.md`` from the rows.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.embedders_page import PAGE, ROWS, render
from benchmarks.rows import (
    append_row,
    describe_circumstances,
    find_data,
    hash_file,
    read_rows,
)
from hilander.embedders.cache import EmbeddingCache, cache_key
from hilander.embedders.listing import list_pictures
from hilander.embedders.pictures import embed_pictures
from hilander.embedders.protocol import EmbedderSettings, PictureEmbedder
from hilander.embedders.registry import make_embedder
from hilander.embedders.work import EmbeddingWork
from hilander.errors import SettingError

PHOTO_SIZE = 800, 600
# Photographs, and threads of the network, of each measurement: a run takes 10 to 30 s.
MEASURED = (("objects", 800, 2), ("objects", 800, 1), ("onnx", 800, 2), ("faces", 96, 2))
N_PICTURES, N_FILES = 50_000, 200_000
EVERY = 5_000  # pictures between two records of the memory
DISTANCES = (0.25, 0.30, 0.35, 0.40, 0.45, 0.50, 0.55, 0.60)
FACES = "faces-celeba-train.npz"


def write_photos(folder: Path, n_photos: int, size: tuple[int, int] = PHOTO_SIZE) -> None:
    """Write JPEGs; every one has the face of the astronaut, if scikit-image is installed."""
    from PIL import Image

    rng = np.random.default_rng(0)
    face = _find_face()
    for number in range(n_photos):
        coarse = rng.integers(0, 256, (size[1] // 20, size[0] // 20, 3), dtype=np.uint8)
        photo = Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)
        if face is not None:
            photo.paste(face, (int(rng.integers(0, size[0] - 512)), 0))
        photo.save(folder / f"{number:06}.jpg", quality=85)


def _find_face() -> Any:
    try:
        from skimage import data
    except ImportError:
        return None
    from PIL import Image

    return Image.fromarray(data.astronaut())


def measure_throughput(name: str, n_photos: int, threads: int, folder: Path) -> dict[str, Any]:
    """Pictures or faces a second of the bare network, and of the pipeline.

    The network is measured before and after the pipeline: other programs slow both down alike.
    """
    import torch

    torch.set_num_threads(threads)
    given = f"onnx:{_export(folder / 'objects.onnx')}" if name == "onnx" else name
    embedder = make_embedder(given, _settings(name))
    if not isinstance(embedder, PictureEmbedder):
        raise SettingError(f"{name} is no embedder of pictures; measure another")
    photos = folder / f"{name}-{threads}"
    photos.mkdir()
    write_photos(photos, n_photos)
    pieces = _prepare(embedder, photos)
    embedder.embed(pieces[:2])  # the first call allocates
    before = _time(lambda: _embed_all(embedder, pieces))
    prepared = _time(lambda: _prepare(embedder, photos))
    with TemporaryDirectory() as place:
        work = EmbeddingWork(Path(place))
        with EmbeddingCache(work.cache, cache_key(embedder)) as cache:
            whole = _time(lambda: embed_pictures(list_pictures([photos]), embedder, work, cache))
    after = _time(lambda: _embed_all(embedder, pieces))
    return {
        "kind": "throughput",
        "embedder": name,
        "n_photos": n_photos,
        "n_pieces": len(pieces),
        "bare_per_second": 2 * len(pieces) / (before + after),
        "prepare_per_second": n_photos / prepared,
        "pipeline_per_second": len(pieces) / whole,
        "threads": threads,
        "load": os.getloadavg()[0],
    }


def _settings(name: str) -> EmbedderSettings:
    half = (0.5, 0.5, 0.5) if name == "onnx" else None
    return EmbedderSettings(device="cpu", mean=half, std=half)


def _export(path: Path) -> Path:
    """Write the network of `objects` as an ONNX file."""
    import torch

    from hilander.embedders.objects.embedder import find_weights
    from hilander.embedders.objects.network import PIXELS, EfficientNetLite0

    weights = torch.load(find_weights(), map_location="cpu", weights_only=True)
    network = EfficientNetLite0(weights).eval()
    network.fold_norms()
    axes = {"pixels": {0: "n"}, "features": {0: "n"}}
    example = torch.zeros(1, 3, PIXELS, PIXELS)
    torch.onnx.export(
        network, (example,), path, dynamo=False, dynamic_axes=axes, input_names=["pixels"],
        output_names=["features"],
    )  # fmt: skip
    return path


def measure_dlib() -> dict[str, Any]:
    """Milliseconds for a face, by dlib's own network and by the one in torch, on one thread."""
    import dlib
    import torch

    from hilander.embedders.faces.embedder import find_models

    embedder = make_embedder("faces", EmbedderSettings(device="cpu"))
    rng = np.random.default_rng(0)
    faces = list(rng.integers(0, 256, (32, 150, 150, 3), dtype=np.uint8))
    path = find_models() / "dlib_face_recognition_resnet_model_v1.dat"
    theirs = dlib.face_recognition_model_v1(str(path))
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        embedder.embed(faces[:2])
        expected = [np.array(theirs.compute_face_descriptor(face)) for face in faces[:8]]
        slow = _time_cpu(lambda: [theirs.compute_face_descriptor(face) for face in faces[:8]]) / 8
        alone = _time_cpu(lambda: [embedder.embed([face]) for face in faces[:8]]) / 8
        fast = _time_cpu(lambda: embedder.embed(faces)) / len(faces)
    finally:
        torch.set_num_threads(n_threads)
    found = embedder.embed(faces[:8])
    return {
        "kind": "dlib",
        "dlib_ms": 1000 * slow,
        "torch_alone_ms": 1000 * alone,
        "torch_batch_ms": 1000 * fast,
        "largest_difference": float(np.abs(found - np.array(expected)).max()),
        "load": os.getloadavg()[0],
    }


def measure_memory(folder: Path, n_pictures: int, n_files: int) -> Iterator[dict[str, Any]]:
    """Memory while many pictures are embedded, and the time for more files with known contents."""
    pictures = folder / "pictures"
    pictures.mkdir()
    write_small(pictures, n_pictures)
    embedder = make_embedder("objects", EmbedderSettings(device="cpu", pixels=32))
    if not isinstance(embedder, PictureEmbedder):
        raise SettingError("objects is no embedder of pictures")
    work = EmbeddingWork(folder / "cache", batch_size=64)
    records: list[dict[str, Any]] = []
    watched = _watch(embedder, n_pictures, records)
    with EmbeddingCache(work.cache, cache_key(embedder)) as cache:
        seconds = _time(lambda: embed_pictures(list_pictures([pictures]), watched, work, cache))
        for record in records:
            yield {"kind": "memory", **record, "seconds": seconds}
        for number in range(n_pictures, n_files):
            source = pictures / f"{number % n_pictures:06}.jpg"
            os.link(source, pictures / f"{number:06}.jpg")
        for run in ("first", "second"):
            start = time.perf_counter()
            listing = list_pictures([pictures])
            listed = time.perf_counter() - start
            outcome = embed_pictures(listing, embedder, work, cache)
            yield {
                "kind": "files",
                "run": run,
                "n_files": len(listing.names),
                "n_new": outcome.n_new,
                "listing_seconds": listed,
                "seconds": time.perf_counter() - start,
                "load": os.getloadavg()[0],
            }


def write_small(folder: Path, n_pictures: int) -> None:
    """Write small JPEGs, all different."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for number in range(n_pictures):
        pixels = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((48, 48)).save(folder / f"{number:06}.jpg")


def _watch(
    embedder: PictureEmbedder, n_pictures: int, records: list[dict[str, Any]]
) -> PictureEmbedder:
    """The embedder, recording the memory at regular intervals."""
    embed, seen = embedder.embed, [0]
    every = min(EVERY, max(1, n_pictures // 10))

    def watched(batch: Any) -> Any:
        before = seen[0] // every
        seen[0] += len(batch)
        if seen[0] // every > before or seen[0] == n_pictures:
            records.append({"n_pictures": seen[0], "megabytes": measure_resident()})
        return embed(batch)

    embedder.embed = watched  # type: ignore[method-assign]
    return embedder


def measure_resident() -> float:
    """Resident memory of this process and those that it started, in megabytes."""
    total = 0
    for process in (os.getpid(), *_children()):
        status = Path(f"/proc/{process}/status")
        if status.is_file():
            lines = status.read_text(encoding="utf-8").splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    return total / 1024


def _children() -> list[int]:
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    return [int(one) for one in path.read_text().split()] if path.is_file() else []


def measure_distances(data: Path) -> dict[str, Any]:
    """Share of pairs of different people below each distance."""
    path = data / FACES
    with np.load(path) as arrays:
        features, labels = arrays["features"].astype(np.float64), arrays["labels"]
    squares = (features**2).sum(axis=1)
    near, n_pairs = np.zeros(len(DISTANCES), np.int64), 0
    for row in range(len(features)):
        rest = slice(row + 1, None)
        other = labels[rest] != labels[row]
        squared = squares[row] + squares[rest] - 2 * features[rest] @ features[row]
        near += (squared[other][:, None] < np.square(DISTANCES)).sum(axis=0)
        n_pairs += int(other.sum())
    shares = {f"{bound:.2f}": int(n) / n_pairs for bound, n in zip(DISTANCES, near, strict=True)}
    return {"kind": "distances", "n_pairs": n_pairs, "shares": shares, "data": hash_file(path)}


def _prepare(embedder: PictureEmbedder, photos: Path) -> list[Any]:
    from hilander.embedders.decoding import open_reduced

    paths = sorted(photos.iterdir())
    opened = (open_reduced(path.read_bytes(), embedder.prepare.least_side)[0] for path in paths)
    return [piece.pixels for picture in opened for piece in embedder.prepare(picture)]


def _embed_all(embedder: PictureEmbedder, pieces: list[Any]) -> None:
    for start in range(0, len(pieces), 32):
        embedder.embed(pieces[start : start + 32])


def _time(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _time_cpu(function: Callable[[], Any]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def run(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Measure what the command line names."""
    with TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        if args.command == "throughput":
            for embedder, n_photos, threads in MEASURED:
                yield measure_throughput(embedder, n_photos, threads, folder)
            yield measure_dlib()
        elif args.command == "memory":
            yield from measure_memory(folder, N_PICTURES, N_FILES)
        elif args.command == "distances":
            yield measure_distances(find_data())


def main() -> None:
    """Append rows, or draw the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("throughput", "memory", "distances", "render"))
    parser.add_argument("--folder", help="where pictures are written meanwhile")
    args = parser.parse_args()
    if args.command == "render":
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(render(read_rows(ROWS), page), encoding="utf-8")
        return
    for row in run(args):
        append_row(ROWS, {**row, **describe_circumstances()})
        print(row)


if __name__ == "__main__":
    main()

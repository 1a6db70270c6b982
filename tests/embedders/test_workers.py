"""Worker processes: order, crashes."""

import os
from dataclasses import dataclass

from PIL import Image

from hilander.embedders.cache import EmbeddingCache
from hilander.embedders.resizing import MiddleSquare
from hilander.embedders.workers import ReadingWorkers


@dataclass(frozen=True)
class CrashOnRed:
    """A preparation whose process dies on a red picture, as a decoder with a defect does."""

    least_side: int = 0

    def __call__(self, picture):
        if picture.getpixel((0, 0)) == (255, 0, 0):
            os._exit(7)
        return MiddleSquare(4, 4)(picture)


@dataclass(frozen=True)
class FailOnRed:
    least_side: int = 0

    def __call__(self, picture):
        if picture.getpixel((0, 0)) == (255, 0, 0):
            raise ZeroDivisionError("a defect")
        return MiddleSquare(4, 4)(picture)


def write_files(folder, colours):
    EmbeddingCache(folder, "one").close()
    paths = []
    for number, colour in enumerate(colours):
        path = folder / f"{number:03}.png"
        Image.new("RGB", (6, 6), colour).save(path)
        paths.append(str(path))
    return paths


def test_files_come_back_in_their_order(tmp_path):
    paths = write_files(tmp_path, ["blue"] * 50)
    workers = ReadingWorkers(MiddleSquare(4, 4), tmp_path, "one", 2)
    assert [one.path for one in workers.read(paths)] == paths


def test_a_file_that_kills_its_worker_is_found_and_the_others_are_read(tmp_path):
    colours = ["blue"] * 20
    colours[11] = "red"
    paths = write_files(tmp_path, colours)
    read = list(ReadingWorkers(CrashOnRed(), tmp_path, "one", 2).read(paths))
    assert [one.path for one in read] == paths
    reasons = {one.path: one.reason for one in read if one.reason}
    assert list(reasons) == [paths[11]]
    assert "crash" in reasons[paths[11]]
    assert all(one.pieces for one in read if one.path != paths[11])


def test_a_defect_of_a_preparation_is_the_reason_of_its_file(tmp_path):
    paths = write_files(tmp_path, ["blue", "red", "blue"])
    read = list(ReadingWorkers(FailOnRed(), tmp_path, "one", 0).read(paths))
    assert [bool(one.pieces) for one in read] == [True, False, True]
    assert "ZeroDivisionError: a defect" in str(read[1].reason)

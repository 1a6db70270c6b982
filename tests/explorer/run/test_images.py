"""Only images that the run lists are shown, and only after they were encoded again."""

import io
import os

import numpy as np
import pyarrow
import pytest
from PIL import Image

from hilander.errors import SettingError
from hilander.explorer.run.images import ImageFolder, ThumbnailArray, open_images
from hilander.explorer.run.items import Items
from hilander.io.item_columns import BOX_COLUMNS


def picture(path, size=(40, 30), **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, "red").save(path, **options)


def folder_of(tmp_path, *paths):
    ids = pyarrow.array([str(row) for row in range(len(paths))])
    items = Items(ids, {"path": pyarrow.array(list(paths), type=pyarrow.string())})
    return ImageFolder(tmp_path / "images", items, tmp_path / "cache")


def decode(content):
    return Image.open(io.BytesIO(content))


@pytest.mark.parametrize("shape", [(3, 9, 7), (3, 9, 7, 3)])
def test_a_thumbnail_of_an_array_has_its_pixels(shape):
    thumbs = np.random.default_rng(0).integers(0, 255, shape).astype(np.uint8)
    shown = decode(ThumbnailArray(thumbs).thumbnail(1))
    np.testing.assert_array_equal(np.asarray(shown), thumbs[1])
    assert ThumbnailArray(thumbs).thumbnail(3) is None


def test_a_listed_file_is_made_smaller_and_cached(tmp_path):
    picture(tmp_path / "images" / "a" / "b.jpg", (900, 600))
    folder = folder_of(tmp_path, "a/b.jpg")
    shown = decode(folder.thumbnail(0))
    assert shown.format == "JPEG"
    assert max(shown.size) == 320
    assert max(decode(folder.full_size(0)).size) == 900
    (kept,) = (tmp_path / "cache").rglob("*.jpg")
    kept.write_bytes(b"kept")
    assert folder.thumbnail(0) == b"kept"


def test_a_changed_file_gives_a_new_thumbnail(tmp_path):
    picture(tmp_path / "images" / "b.png")
    folder = folder_of(tmp_path, "b.png")
    before = folder.thumbnail(0)
    picture(tmp_path / "images" / "b.png", (10, 90))
    assert folder.thumbnail(0) != before


@pytest.mark.parametrize(
    "path",
    [
        "../secret.png",
        "a/../../secret.png",
        "./../secret.png",
        "..\\secret.png",
        "/etc/passwd",
        "a\x00.png",
        "",
        "missing.png",
        ".",
        "a",
        "%2e%2e/secret.png",
    ],
)
def test_a_path_never_leads_out_of_the_folder(tmp_path, path):
    picture(tmp_path / "secret.png")
    picture(tmp_path / "images" / "a" / "x.png")
    folder = folder_of(tmp_path, path)
    assert folder.locate(0) is None
    assert folder.thumbnail(0) is None


def test_an_absolute_path_to_an_image_outside_is_refused(tmp_path):
    picture(tmp_path / "secret.png")
    assert folder_of(tmp_path, str(tmp_path / "secret.png")).thumbnail(0) is None


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    picture(tmp_path / "outside" / "secret.png")
    (tmp_path / "images").mkdir()
    os.symlink(tmp_path / "outside" / "secret.png", tmp_path / "images" / "file.png")
    os.symlink(tmp_path / "outside", tmp_path / "images" / "folder")
    folder = folder_of(tmp_path, "file.png", "folder/secret.png")
    assert folder.thumbnail(0) is None
    assert folder.thumbnail(1) is None


def test_a_link_inside_of_the_folder_is_followed(tmp_path):
    picture(tmp_path / "images" / "real.png")
    os.symlink("real.png", tmp_path / "images" / "link.png")
    assert folder_of(tmp_path, "link.png").thumbnail(0) is not None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
        b"<html>hello",
        b"\x89PNG\r\n\x1a\nbroken",
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
    ],
)
def test_a_file_that_is_no_image_is_not_shown(tmp_path, content):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "x.png").write_bytes(content)
    assert folder_of(tmp_path, "x.png").thumbnail(0) is None


def test_bytes_appended_to_an_image_are_not_served(tmp_path):
    picture(tmp_path / "images" / "x.png")
    with (tmp_path / "images" / "x.png").open("ab") as stream:
        stream.write(b"<script>alert(1)</script>")
    assert b"script" not in folder_of(tmp_path, "x.png").thumbnail(0)


def test_without_a_column_of_paths_the_ids_are_the_paths(tmp_path):
    picture(tmp_path / "images" / "ann" / "1.png")
    items = Items(pyarrow.array(["ann/1.png", "ann/2.png"]), {})
    found = open_images(tmp_path, items, None, images_folder=tmp_path / "images")
    assert decode(found.thumbnail(0)).format == "JPEG"
    assert found.thumbnail(1) is None


def test_a_folder_without_a_file_named_by_an_id_is_refused(tmp_path):
    picture(tmp_path / "images" / "other.png")
    items = Items(pyarrow.array(["0", "1"]), {})
    with pytest.raises(SettingError, match="holds no file named by an id"):
        open_images(tmp_path, items, None, images_folder=tmp_path / "images")


@pytest.fixture
def two_sources(tmp_path):
    """Two items of an array of images, and two of a folder."""
    thumbs = np.zeros((2, 9, 7), dtype=np.uint8)
    thumbs[1] = 200
    for name in ("a.png", "b.png"):
        picture(tmp_path / "images" / name)
    return ThumbnailArray(thumbs), folder_of(tmp_path, "a.png", "b.png")


def test_the_version_of_an_image_changes_with_its_content_alone(two_sources, tmp_path):
    array, folder = two_sources
    for source in two_sources:
        assert source.version(0) == source.version(0) != source.version(1)
    before = array.version(0), folder.version(0)
    array.thumbs[0, 0, 0] = 1
    file = tmp_path / "images" / "a.png"
    facts = file.stat()
    picture(file)
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))  # same time, same size
    assert array.version(0) != before[0]
    assert folder.version(0) != before[1]
    file.unlink()
    assert folder.version(0) is None


def faces_of(tmp_path, *boxes):
    """A photo with a blue square on red, and a row for each box."""
    photo = Image.new("RGB", (800, 600), "red")
    photo.paste("blue", (400, 200, 500, 300))
    (tmp_path / "images").mkdir()
    photo.save(tmp_path / "images" / "photo.jpg", quality=95)
    columns = {
        name: pyarrow.array([box[place] for box in boxes], type=pyarrow.float32())
        for place, name in enumerate(BOX_COLUMNS)
    }
    columns["path"] = pyarrow.array(["photo.jpg"] * len(boxes))
    ids = pyarrow.array([f"photo.jpg#{row}" for row in range(len(boxes))])
    return ImageFolder(tmp_path / "images", Items(ids, columns), tmp_path / "cache")


def test_the_thumbnail_of_a_face_is_cut_from_its_photo(tmp_path):
    folder = faces_of(tmp_path, (400, 200, 500, 300), (0, 0, 100, 100), (None,) * 4)
    face, other, whole = (np.asarray(decode(folder.thumbnail(row))).astype(int) for row in range(3))
    middle = face[face.shape[0] // 2, face.shape[1] // 2]
    assert middle[2] > 200 > 100 > middle[0]
    assert 160 <= max(face.shape) <= 180  # the box of 100 pixels with its margin
    assert other[..., 2].max() < 60
    assert whole.shape == (240, 320, 3)
    assert len({folder.version(row) for row in range(3)}) == 3


def test_the_full_view_of_a_face_is_its_photo_with_a_frame(tmp_path):
    folder = faces_of(tmp_path, (100, 100, 200, 200), (None,) * 4)
    framed, plain = (np.asarray(decode(folder.full_size(row))).astype(int) for row in range(2))
    assert framed.shape == plain.shape == (600, 800, 3)
    assert framed[150, 100, 1] > 120 > plain[150, 100, 1]
    assert framed[150, 150, 1] < 60


def test_a_name_that_is_not_utf_8_is_found(tmp_path):
    name = os.fsdecode(b"caf\xe9.png")
    picture(tmp_path / "images" / name)
    folder = folder_of(tmp_path, r"caf\xe9.png")
    assert decode(folder.thumbnail(0)).size == (40, 30)


def test_16_bit_greys_and_transparent_parts_are_shown_as_they_are(tmp_path):
    (tmp_path / "images").mkdir()
    Image.fromarray(np.full((9, 9), 32768, np.uint16)).save(tmp_path / "images" / "grey.png")
    Image.new("RGBA", (9, 9), (255, 0, 0, 0)).save(tmp_path / "images" / "clear.png")
    folder = folder_of(tmp_path, "grey.png", "clear.png")
    assert abs(np.asarray(decode(folder.thumbnail(0))).mean() - 127) < 3
    assert np.asarray(decode(folder.thumbnail(1))).min() > 250

"""Decoding: every kind of picture becomes upright RGB, everything else has a reason."""

import numpy as np
import pytest
from PIL import Image

from hilander.embedders.decoding import (
    MOST_MEGAPIXELS,
    can_read_heif,
    open_picture,
    open_reduced,
    own_limits,
    read_file,
)
from hilander.embedders.skipping import SkippedItem
from tests.embedders.broken_files import FILES, SKIPPED, encode, picture

CONTENT = {name: (make, result) for name, _, make, result in FILES}
# The slow ones are decoded once, by the test of the pipeline.
QUICK = [name for name in CONTENT if not name.startswith(("100", "900"))]


def opened(name):
    with own_limits():
        return open_picture(CONTENT[name][0]())


@pytest.mark.parametrize("name", [name for name in QUICK if CONTENT[name][1] != SKIPPED], ids=ascii)
def test_a_picture_of_any_kind_becomes_rgb(name):
    if name.endswith("heic") and not can_read_heif():
        pytest.skip("the extra hilander[heic] is not installed")
    image = opened(name)
    assert image.mode == "RGB"
    assert np.asarray(image).dtype == np.uint8


@pytest.mark.parametrize("name", [name for name in QUICK if CONTENT[name][1] == SKIPPED], ids=ascii)
def test_what_is_no_picture_has_a_reason(name):
    with pytest.raises(SkippedItem) as caught, own_limits():
        open_picture(CONTENT[name][0]())
    assert caught.value.reason.startswith("is ")


@pytest.mark.parametrize(
    "name", ["rotated.jpg", "cmyk.jpg", "palette.png", "animated.webp", "photo.avif"]
)
def test_the_colours_stay_where_they_are(name):
    pixels = np.asarray(opened(name)).astype(int)
    assert pixels.shape == (48, 64, 3)
    left, right = pixels[:, 4:28].mean((0, 1)), pixels[:, 36:60].mean((0, 1))
    assert left[0] > left[2] + 100
    assert right[2] > right[0] + 100


@pytest.mark.parametrize("name", ["grey-16-bit.png", "grey-16-bit.tif", "float.tif"])
def test_greys_of_many_bits_are_scaled_and_not_cut_off(name):
    pixels = np.asarray(opened(name))[..., 0].astype(int)
    assert pixels[0, 0] < 3
    assert pixels[-1, -1] > 252
    assert 115 < pixels.mean() < 140


def test_transparent_parts_are_white():
    clear = Image.new("RGBA", (8, 8), (200, 0, 0, 0))
    assert (np.asarray(open_picture(encode(clear, "PNG"))) == 255).all()


def test_the_first_frame_of_an_animation_is_used():
    pixels = np.asarray(opened("animated.gif")).astype(int)
    assert pixels[24, 10, 0] > pixels[24, 10, 2]


def test_a_large_jpeg_is_decoded_at_reduced_size():
    content = encode(picture(1600, 1200), "JPEG")
    image, reduction = open_reduced(content, 200)
    assert image.size == (400, 300)
    assert reduction == 4
    assert open_reduced(content, 0)[0].size == (1600, 1200)


def test_a_picture_with_too_many_pixels_is_refused_before_it_is_decoded():
    with (
        pytest.raises(SkippedItem, match=f"900 megapixels .*limit of {MOST_MEGAPIXELS}"),
        own_limits(),
    ):
        open_picture(CONTENT["900-megapixels.png"][0]())


def test_heic_without_its_extra_says_how_to_get_it_and_is_tried_again(monkeypatch):
    monkeypatch.setattr("hilander.embedders.decoding.can_read_heif", lambda: False)
    with pytest.raises(SkippedItem, match=r"hilander\[heic\]") as caught:
        open_picture(b"\0\0\0\x18ftypheic" + bytes(40))
    assert not caught.value.lasting


def test_a_file_that_is_not_there_may_come_back(tmp_path):
    with pytest.raises(SkippedItem, match="No such file") as caught:
        read_file(str(tmp_path / "gone.jpg"))
    assert not caught.value.lasting


def test_own_limits_are_put_back():
    before = Image.MAX_IMAGE_PIXELS
    with own_limits():
        assert Image.MAX_IMAGE_PIXELS is None
    assert before == Image.MAX_IMAGE_PIXELS


def test_a_png_of_16_bit_colours_keeps_their_order():
    pixels = np.asarray(open_picture(CONTENT["colour-16-bit.png"][0]()))
    assert (np.diff(pixels[0, :, 0].astype(int)) >= 0).all()
    assert pixels[0, -1, 0] > pixels[0, 0, 0]

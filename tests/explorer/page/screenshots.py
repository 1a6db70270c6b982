"""Screenshots that are only taken of a page whose images, fonts and maps are drawn."""

import io
import time

import numpy as np
import pytest
from PIL import Image

# Lazy images below the visible part would otherwise never load. With synchronous decoding, an image
# that is loaded is never drawn as an empty tile.
LOAD_ALL = """() => {
    for (const image of document.images) { image.loading = 'eager'; image.decoding = 'sync'; }
}"""
MISSING = """() => [
    ...[...document.images].filter(
        one => !one.complete || one.naturalWidth === 0).map(one => one.src),
    ...[...document.querySelectorAll('.map-box')].filter(
        one => !one.querySelector('canvas[data-milliseconds]')).map(() => 'a map'),
    ...(document.fonts.status === 'loaded' ? [] : ['fonts']),
    ...[...document.querySelectorAll('.loading')].map(() => 'a view that is loading'),
]"""
DRAWN = """async () => {
    await Promise.all([...document.images].map(one => one.decode()));
    await document.fonts.ready;
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
BOXES = """() => [...document.images].filter(one => one.closest('.thumb')).map(one => {
    const box = one.getBoundingClientRect();
    return [box.left, box.top, box.right, box.bottom];
}).filter(([left, top, right, bottom]) =>
    left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight)"""


def take_screenshot(page, seconds=30):
    """Return a PNG of the page, after everything on it is drawn; fail if something is missing."""
    page.settle()
    end = time.monotonic() + seconds
    while missing := page.evaluate(LOAD_ALL) or page.evaluate(MISSING):
        if time.monotonic() > end:
            pytest.fail(f"not loaded after {seconds} s: {', '.join(missing[:5])}")
        page.wait_for_timeout(20)
    page.evaluate(DRAWN)
    picture = page.screenshot(animations="disabled")
    check_thumbnails(picture, page.evaluate(BOXES))
    return picture


def check_thumbnails(picture, boxes):
    """Fail if a thumbnail was drawn as a tile of one colour."""
    pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("L"), dtype=int)
    for box in boxes:
        left, top, right, bottom = (round(value) for value in box)
        # Without the rim: its corners are round.
        inner = pixels[top + 6 : bottom - 6, left + 6 : right - 6]
        if inner.size:
            assert np.ptp(inner) > 0, f"the thumbnail at {left}, {top} is an empty tile"

"""The map: pictures and names at the centres, dots by the size of their cluster, what is drawn."""

import numpy as np
import pytest

from tests.explorer.small_runs import write_run

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

NEXT_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
FRAMES = "Number(document.querySelector('.map-box canvas').dataset.frames)"
# Pixels of a dot's colour in a square around a place of the canvas; 0 where nothing is drawn.
INK = """([x, y, half]) => {
    const canvas = document.querySelector('.map-box canvas');
    const ratio = canvas.width / canvas.clientWidth;
    const [left, top, side] = [x - half, y - half, 2 * half].map(one => Math.round(one * ratio));
    const data = canvas.getContext('2d').getImageData(left, top, side, side).data;
    const pixels = new Uint32Array(data.buffer);
    const own = pixels[(side / 2) * side + side / 2];
    return own ? pixels.filter(one => one === own).length : 0;
}"""


@pytest.fixture
def map_page(page):
    page.go("map")
    page.until("document.querySelector('.map-box canvas[data-frames]')")
    return page


def place_on_canvas(page, place):
    box = page.locator(".map-box canvas").bounding_box()
    half = 0.47 * min(box["width"], box["height"])
    return [box["width"] / 2 + float(place[0]) * half, box["height"] / 2 + float(place[1]) * half]


def find_centres(explorer):
    """Mean place of the peaks of each cluster."""
    layout = explorer.map
    clusters = explorer.reviewed().labels[layout.points]
    return {int(one): layout.places[clusters == one].mean(axis=0) for one in np.unique(clusters)}


def test_pictures_and_names_stand_at_the_centres_of_clusters(page, site):
    centres = find_centres(site.explorer)
    named = int(site.explorer.reviewed().order("size")[0])
    site.explorer.act("name", {"group": named, "name": "tulips"})
    page.go("map")
    page.until(f"document.querySelector('.centres [data-cluster=\"{named}\"] img')?.naturalWidth")
    shown = page.locator(".centres > span").evaluate_all(
        "all => all.map(one => [one.dataset.cluster, one.innerText, one.querySelector('img')?.src])"
    )
    peaks = site.explorer.reviewed().peaks
    for cluster, text, image in shown:
        assert text == ("tulips" if int(cluster) == named else f"#{cluster}")
        assert f"/items/{peaks[int(cluster)]}/image?v=" in image
    label = page.locator(f".centres [data-cluster='{named}']").bounding_box()
    canvas = page.locator(".map-box canvas").bounding_box()
    x, y = place_on_canvas(page, centres[named])
    assert label["x"] + label["width"] / 2 - canvas["x"] == pytest.approx(x, abs=2)
    assert label["y"] + label["height"] + 8 - canvas["y"] == pytest.approx(y, abs=2)


def test_of_many_clusters_the_named_ones_have_a_name_until_one_zooms_in(site, serve_run, open_page,
                                                                       tmp_path):  # fmt: skip
    many = serve_run(write_run(tmp_path / "many", p_tau=0.9, max_levels=1))
    centres = find_centres(many.explorer)
    assert len(centres) > 40
    named = int(many.explorer.reviewed().order("size")[0])
    many.explorer.act("name", {"group": named, "name": "tulips"})
    page = open_page(many)
    page.go("map")
    page.until("document.querySelector('.centres span')")
    assert page.locator(".centres > span").all_inner_texts() == ["tulips"]
    for _ in range(3):
        page.get_by_label("Zoom in").click()
    page.until("document.querySelectorAll('.centres img').length > 1")
    assert page.locator(".centres > span").count() > 1


def test_dots_are_as_large_as_their_clusters_if_asked(map_page, site):
    page, layout, grouping = map_page, site.explorer.map, site.explorer.reviewed()
    largest = int(grouping.order("size")[0])
    point = int(np.flatnonzero(grouping.labels[layout.points] == largest)[0])
    place = [*place_on_canvas(page, layout.places[point]), 10]
    before, frames = page.evaluate(INK, place), page.evaluate(FRAMES)
    page.get_by_label("Size").select_option("cluster")
    page.until(f"{FRAMES} > {frames} && location.hash.includes('size=cluster')")
    assert page.evaluate(INK, place) > 1.5 * before
    frames = page.evaluate(FRAMES)
    page.get_by_label("Size").select_option("")
    page.until(f"{FRAMES} > {frames}")
    assert page.evaluate(INK, place) == before


def test_every_point_in_view_is_drawn_at_any_zoom(map_page, site):
    """The cells of the grid that are in view hold all points that are."""
    page, layout = map_page, site.explorer.map
    for _ in range(2):
        page.get_by_label("Zoom in").click()
    page.locator("h1").click()
    page.keyboard.press("ArrowRight")
    page.evaluate(NEXT_FRAMES)
    box = page.locator(".map-box canvas").bounding_box()
    half, zoom = 0.47 * min(box["width"], box["height"]), 1.6**2
    drawn = 0
    for x, y in layout.places.tolist():
        left = box["width"] / 2 + x * half * zoom - 80
        top = box["height"] / 2 + y * half * zoom
        if 20 < left < box["width"] - 20 and 20 < top < box["height"] - 20:
            assert page.evaluate(INK, [left, top, 4]) > 4
            drawn += 1
    assert 3 < drawn < len(layout.points)

"""Pictures of the explorer for the documents, and the first steps of a new user.

`make screenshots` writes the pictures: they are written only if HILANDER_SCREENSHOTS is set. No
picture is taken before every image of the page is drawn.
"""

import csv
import io
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hilander.embeddings.preparation import learn_preparation
from hilander.hierarchy.run_extras import RunExtras, write_extras
from hilander.hierarchy.storage import write_hierarchy
from hilander.io.writing import folder_writer, write_json
from hilander.synthetic.glyph_embedding import make_glyph_data
from tests.explorer.page.screenshots import check_thumbnails, take_screenshot
from tests.explorer.serving import PHONE, Held
from tests.explorer.small_runs import cluster_noisily, write_graph

IMAGES = Path(__file__).resolve().parents[3] / "docs" / "images"
WRITES_PICTURES = "HILANDER_SCREENSHOTS" in os.environ
# The end of the name of a picture; the device, the theme and the views that are taken with it.
LOOKS = {
    "": ({}, "light", ()),
    "-dark": ({}, "dark", ("clusters", "cluster", "map", "review")),
    "-phone": (PHONE, "light", ("clusters", "cluster", "map", "review")),
}
# Enough for clusters of many sizes, and for a map that fills its box.
N_CHARACTERS = 450


@pytest.fixture(scope="module")
def glyph_run(tmp_path_factory):
    """Printed characters with their images, clustered by a scorer that makes mistakes."""
    data = make_glyph_data(seed=0, max_characters=N_CHARACTERS)
    labels = np.unique(data.test_labels, return_inverse=True)[1]
    points = learn_preparation(data.test_features, "auto").apply(data.test_features)
    hierarchy, first = cluster_noisily(points, labels, seed=1, p_tau=0.8, max_levels=4)
    ids = np.array([f"character-{row:04d}" for row in range(len(points))])
    folder = tmp_path_factory.mktemp("glyphs") / "characters"
    with folder_writer(folder, "run") as inside:
        write_hierarchy(hierarchy, inside, ids)
        write_graph(inside, first)
        names = np.array([f"glyph {label}" for label in labels])
        write_extras(inside, hierarchy, RunExtras(points, data.test_thumbs, {"label": names}))
        stages = [{"stage": "read", "seconds": 0.2}, {"stage": "level_0", "seconds": 1.9}]
        settings = {"k": 6, "p_tau": 0.8}
        write_json(inside / "run.json", {"settings": settings, "stages": stages})
    return folder


def test_a_new_user_splits_the_largest_wrong_merge_names_the_parts_and_exports(page, site):
    # The first difference from the true labels is the largest wrong merge.
    page.go("compare")
    page.locator(".diff a").first.click()
    page.until("document.querySelector('.part input')")
    cluster = int(page.url.rsplit("/", 1)[1])
    parts = page.locator(".part").count()
    assert parts > 1
    page.locator("[data-action=select-parts]").click()
    page.locator("[data-action^=split]").last.click()
    page.wait_for_selector("dialog form")
    inputs = page.locator("dialog input")
    assert inputs.count() == parts
    for number in range(parts):
        inputs.nth(number).fill(f"letter {number}")
    page.locator("dialog .primary").click()
    page.until("!document.querySelector('dialog')")
    names = site.explorer.review.state.names
    assert names[cluster] == "letter 0"
    assert sorted(names.values()) == sorted(f"letter {number}" for number in range(parts))
    page.go("review/export")
    with page.expect_download() as waiting:
        page.locator("[data-export=labels-csv]").click()
    text = waiting.value.path().read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == site.explorer.run.n_points
    assert {row["name"] for row in rows} == {"", *names.values()}


def test_a_screenshot_shows_the_images_of_every_view(page, site):
    cluster = int(site.explorer.reviewed().order("size")[0])
    for path in ("", "clusters", f"cluster/reviewed/{cluster}", "map"):
        page.go(path)
        assert take_screenshot(page).startswith(b"\x89PNG")


def test_no_screenshot_is_taken_before_an_image_has_loaded(page):
    held = Held(page, "**/api/items/*/image*")
    page.go("clusters")
    with pytest.raises(pytest.fail.Exception, match="/image"):
        take_screenshot(page, seconds=0.3)
    held.release()
    assert take_screenshot(page)


def test_an_empty_tile_is_an_error():
    stream = io.BytesIO()
    Image.new("RGB", (80, 80), "grey").save(stream, "PNG")
    with pytest.raises(AssertionError, match="empty tile"):
        check_thumbnails(stream.getvalue(), [[10, 10, 60, 60]])


@pytest.mark.skipif(not WRITES_PICTURES, reason="HILANDER_SCREENSHOTS is not set")
@pytest.mark.parametrize("look", list(LOOKS))
def test_pictures_of_every_view(glyph_run, open_page, serve_run, look):
    device, theme, names = LOOKS[look]
    site = serve_run(glyph_run)
    explorer = site.explorer
    grouping = explorer.reviewed()
    by_size = grouping.order("size")
    mixed = int(by_size[grouping.purity[by_size] < 1][0])
    views = {
        "overview": "",
        "clusters": "clusters",
        "cluster": f"cluster/reviewed/{mixed}",
        "hierarchy": "tree?start=0&end=400",
        "map": "map",
        "point": "point/7",
        "review": "review",
        "compare": "compare",
    }
    page = open_page(site, **device)
    page.emulate_media(color_scheme=theme)
    explorer.act("name", {"group": int(by_size[1]), "name": "letter n"})
    for name in names or views:
        page.go(views[name])
        if name == "map":
            open_map(page)
        # 256 colours halve the size of the file and look the same.
        picture = Image.open(io.BytesIO(take_screenshot(page))).convert("RGB")
        picture.quantize(256, dither=Image.Dither.NONE).save(
            IMAGES / f"explorer-{name}{look}.png", optimize=True
        )
    explorer.act("undo", {})


def open_map(page):
    """Show pictures at the centres and dots by size, and pin the point in the middle."""
    page.until("document.querySelector('.map-box canvas[data-frames]')")
    page.get_by_label("Size").select_option("cluster")
    for _ in range(2):
        page.get_by_label("Zoom in").click()
    page.until("document.querySelector('.centres img')")

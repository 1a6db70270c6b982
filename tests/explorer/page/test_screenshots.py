"""Pictures of the explorer for the documents; and its review tried as a new user would.

The pictures are written only where HILANDER_SCREENSHOTS is set.
"""

import csv
import io
import os
from pathlib import Path

import numpy as np
import pytest

from hilander.embeddings.preparation import learn_preparation
from hilander.hierarchy.run_extras import RunExtras, write_extras
from hilander.hierarchy.storage import write_hierarchy
from hilander.io.writing import folder_writer, write_json
from hilander.synthetic.glyph_embedding import make_glyph_data
from tests.explorer.small_runs import cluster_noisily, write_graph

IMAGES = Path(__file__).resolve().parents[3] / "docs" / "images"
N_CHARACTERS = 150


def handwritten_characters(folder):
    with np.load(folder / "omniglot-test.npz") as arrays:
        chosen = arrays["labels"] < N_CHARACTERS
        features = arrays["features"][chosen].astype(np.float32)
        return features, arrays["labels"][chosen].astype(np.int64), arrays["thumbs"][chosen]


def printed_characters():
    made = make_glyph_data(seed=0, max_characters=3 * N_CHARACTERS)
    labels = np.unique(made.test_labels, return_inverse=True)[1]
    return made.test_features, labels, made.test_thumbs


@pytest.fixture(scope="module")
def omniglot_run(shared_data, tmp_path_factory):
    """Characters with their images, clustered with a scorer that makes mistakes.

    Handwritten ones; for pictures that go into the documents, the project's own printed ones.
    """
    if os.environ.get("HILANDER_SCREENSHOTS"):
        features, labels, thumbs = printed_characters()
    else:
        features, labels, thumbs = handwritten_characters(shared_data)
    points = learn_preparation(features, "auto").apply(features)
    hierarchy, first = cluster_noisily(points, labels, seed=1, p_tau=0.8, max_levels=4)
    ids = np.array([f"character-{row:04d}" for row in range(len(points))])
    folder = tmp_path_factory.mktemp("omniglot") / "characters"
    with folder_writer(folder, "run") as inside:
        write_hierarchy(hierarchy, inside, ids)
        write_graph(inside, first)
        names = np.array([f"glyph {label}" for label in labels])
        write_extras(inside, hierarchy, RunExtras(points, thumbs, {"label": names}))
        stages = [{"stage": "read", "seconds": 0.2}, {"stage": "level_0", "seconds": 1.9}]
        settings = {"k": 6, "p_tau": 0.8}
        write_json(inside / "run.json", {"settings": settings, "stages": stages})
    return folder


@pytest.fixture
def page(omniglot_run, open_page, serve_run):
    site = serve_run(omniglot_run)
    made = open_page(site)
    made.site = site
    return made


def test_a_new_user_splits_the_largest_wrong_merge_names_the_parts_and_exports(page):
    # The largest wrong merge is the first difference from the true labels.
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
    names = page.site.explorer.review.state.names
    assert names[cluster] == "letter 0"
    assert sorted(names.values()) == [f"letter {number}" for number in range(parts)]
    page.go("review/export")
    with page.expect_download() as waiting:
        page.locator("[data-export=labels-csv]").click()
    text = waiting.value.path().read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == page.site.explorer.run.n_points
    assert {row["name"] for row in rows} == {"", *names.values()}


@pytest.mark.skipif("HILANDER_SCREENSHOTS" not in os.environ, reason="HILANDER_SCREENSHOTS not set")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_of_every_view(page, theme):
    explorer = page.site.explorer
    largest = int(explorer.reviewed().order("size")[0])
    explorer.act("name", {"group": int(explorer.reviewed().order("size")[1]), "name": "crosses"})
    views = {
        "overview": "",
        "clusters": "clusters",
        "cluster": f"cluster/reviewed/{largest}",
        "hierarchy": "tree?start=0&end=400",
        "map": "map",
        "point": "point/7",
        "review": "review",
        "compare": "compare",
    }
    page.emulate_media(color_scheme=theme)
    for name, path in views.items():
        if theme == "dark" and name not in ("clusters", "map"):
            continue
        page.go(path)
        page.until("[...document.images].every(one => one.complete || one.loading === 'lazy')")
        page.wait_for_timeout(1200)
        end = "" if theme == "light" else "-dark"
        page.screenshot(path=IMAGES / f"explorer-{name}{end}.png")
    explorer.act("undo", {})

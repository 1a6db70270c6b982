"""The page shows the pictures of its run, does only what was chosen, and undoes what was meant."""

import base64

import numpy as np
import pytest

from tests.explorer.small_runs import forget_digest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

# The bytes of every picture of the page, as the browser has them in its cache.
READ_IMAGES = """async () => Promise.all([...document.querySelectorAll('img[alt^=item]')].map(
    async (image) => {
        const bytes = new Uint8Array(await (await fetch(image.src)).arrayBuffer());
        return [image.alt, btoa(String.fromCharCode(...bytes))];
    }))"""


def shown_pictures(page):
    page.evaluate("() => { for (const image of document.images) image.loading = 'eager'; }")
    return {name: base64.b64decode(text) for name, text in page.evaluate(READ_IMAGES)}


def check_pictures(page, site):
    """Every picture of the page is that of the item whose id it has."""
    run = site.explorer.run
    shown = shown_pictures(page)
    assert shown, page.locator("main").inner_text()[:300]
    for name, content in shown.items():
        assert content == run.images.thumbnail(run.items.row_by_id[name]), name


def test_another_run_at_the_same_address_shows_its_own_pictures(make_run, serve_run, open_page):
    first = serve_run(make_run("first"))
    page = open_page(first)
    page.go("clusters")
    check_pictures(page, first)
    first.close()
    folder = make_run("second")
    forget_digest(folder, "thumbs.npy")
    thumbs = np.load(folder / "thumbs.npy")
    np.save(folder / "thumbs.npy", 255 - thumbs)
    second = serve_run(folder, first.port)
    page.reload()
    page.settle()
    check_pictures(page, second)


def test_rows_that_shift_keep_their_pictures(run_folder, serve_run, open_page):
    site = serve_run(run_folder)
    page = open_page(site)
    page.go("clusters")
    before = shown_pictures(page)
    site.close()
    forget_digest(run_folder, "thumbs.npy")
    thumbs = np.load(run_folder / "thumbs.npy")
    np.save(run_folder / "thumbs.npy", np.roll(thumbs, 1, axis=0))
    again = serve_run(run_folder, site.port)
    page.reload()
    page.settle()
    check_pictures(page, again)
    assert shown_pictures(page) != before


def test_enter_in_an_empty_picker_changes_nothing(page, site):
    cluster = int(site.explorer.reviewed().order("size")[0])
    page.go(f"cluster/reviewed/{cluster}")
    page.locator("[data-action=merge-with]").click()
    page.wait_for_selector(".picker .target")
    page.keyboard.press("Enter")
    page.wait_for_timeout(200)
    assert page.locator(".picker").count() == 1
    assert "Choose a cluster first" in page.locator(".picker").inner_text()
    page.keyboard.press("Escape")
    page.until("!document.querySelector('.picker')")
    page.locator(".item .pick").nth(1).check(force=True)
    page.locator("[data-action=move]").click()
    page.wait_for_selector(".picker .target")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    page.until("!document.querySelector('.picker')")
    page.go("point/17")
    page.locator("[data-action=move]").click()
    page.wait_for_selector(".picker .target")
    page.keyboard.press("Enter")
    page.wait_for_timeout(200)
    assert site.explorer.review.log == []


def test_the_picker_shows_the_likeliest_first_and_understands_names(page, site):
    explorer = site.explorer
    cluster = int(explorer.reviewed().order("size")[0])
    other = int(explorer.reviewed().order("size")[-1])
    grouping = explorer.reviewed()
    near = explorer.run.graph.nearest_clusters(grouping.rows_of(cluster), grouping.labels, 3)
    explorer.act("name", {"group": other, "name": "late tulips"})
    page.go(f"cluster/reviewed/{cluster}")
    page.locator("[data-action=merge-with]").click()
    page.wait_for_selector(".picker .target img")
    first = page.locator(".picker .target").first
    assert int(first.get_attribute("data-cluster")) == near[0][0]
    page.keyboard.type("tulip")
    page.until("document.querySelectorAll('.picker .target').length === 1")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.after(lambda: len(explorer.review.done) == 2)
    state = explorer.review.state
    peaks = explorer.base.peaks
    assert state.labels[peaks[cluster]] == state.labels[peaks[other]]


def test_the_undo_of_a_message_undoes_its_own_action(page, site):
    explorer = site.explorer
    first, second = (int(one) for one in explorer.reviewed().order("size")[:2])
    page.go(f"cluster/reviewed/{first}")
    page.keyboard.press("b")
    page.until("document.querySelector('.toast .button')")
    page.go(f"cluster/reviewed/{second}")
    page.keyboard.press("b")
    page.until("document.querySelectorAll('.toast .button').length === 2")
    page.locator(".toast .button").first.click()
    page.after(lambda: len(explorer.review.done) == 1)
    assert explorer.review.state.junk == {second}


def test_the_log_says_what_was_done_and_undoes_one_line(page, site):
    explorer = site.explorer
    explorer.act("name", {"group": 0, "name": "tulips"})
    explorer.act("merge", {"groups": [0, 1]})
    explorer.act("junk", {"group": 2, "junk": True})
    page.go("review/log")
    lines = page.locator(".log-line").all_inner_texts()
    sizes = explorer.base.sizes
    assert f"named cluster 0 ({sizes[0]} items) “tulips”" in lines[2]
    assert "merged " in lines[1]
    assert "“tulips”" in lines[1]
    assert f"({sizes[1]} items)" in lines[1]
    page.locator("[data-undo]").nth(1).click()
    page.after(lambda: len(explorer.review.done) == 2)
    page.until("document.querySelector('.log-line').textContent.includes('undid: merged')")
    assert explorer.review.state.junk == {2}
    assert explorer.reviewed().sizes[1] == sizes[1]

"""Every page by keyboard, by touch, and by the rules of axe-core, light and dark."""

from pathlib import Path

import numpy as np
import pytest

import hilander
from tests.explorer.serving import PHONE

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")

STATIC = Path(hilander.__file__).parent / "explorer" / "static"
RULES = Path(axe.__file__).parent / "axe.min.js"
CHECK = """async () => (await axe.run(document, {resultTypes: ['violations']})).violations
    .filter(one => ['serious', 'critical'].includes(one.impact))
    .map(one => `${one.id}: ${one.nodes.slice(0, 3).map(node => node.target.join(' ')).join(', ')}`)
"""
PAGES = ("", "clusters", "cluster/reviewed/0", "point/3", "tree", "map", "review", "review/log",
         "review/conflicts", "review/export", "compare")  # fmt: skip


@pytest.mark.parametrize(
    ("theme", "device"),
    [("light", {}), ("dark", {}), ("light", PHONE)],
    ids=["light", "dark", "phone"],
)
def test_no_page_has_a_serious_finding(open_page, site, theme, device):
    page = open_page(site, **device)
    site.explorer.act("name", {"group": 0, "name": "tulips"})
    page.emulate_media(color_scheme=theme)
    findings = {}
    for path in PAGES:
        page.go(path)
        # From outside of the page: its policy allows no script of another site.
        page.evaluate(RULES.read_text(encoding="utf-8"))
        if found := page.evaluate(CHECK):
            findings[path] = found
    assert findings == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_dialog_has_a_serious_finding(page, site, theme):
    page.emulate_media(color_scheme=theme)
    findings = {}

    def check(name, shown):
        page.wait_for_selector(shown)
        page.evaluate(RULES.read_text(encoding="utf-8"))
        if found := page.evaluate(CHECK):
            findings[name] = found
        page.keyboard.press("Escape")

    cluster = int(site.explorer.reviewed().order("size")[0])
    page.go(f"cluster/reviewed/{cluster}")
    page.locator("[data-action=merge-with]").click()
    check("picker", ".picker .target")
    page.go("point/3")
    page.locator("[data-action=full-size]").click()
    check("full size", ".full-size img")
    page.go("clusters")
    page.locator("#help").click()
    check("keys", "dialog table")
    page.keyboard.press("j")
    page.keyboard.press("n")
    check("name", "dialog input")
    page.locator(".search input").fill("item-00")
    check("search", "#found [role=option]")
    page.go("map")
    page.until("document.querySelector('.map-box canvas[data-frames]')")
    x, y = place_on_map(page, site.explorer.map.places[0])
    page.mouse.click(x, y)
    check("pinned", "aside .button")
    page.goto(f"{site.address}api")
    check("api", "h1")
    assert findings == {}


def test_the_page_of_a_damaged_run_has_no_serious_finding(browser):
    page = browser.new_page()
    text = (STATIC / "problem.html").read_text(encoding="utf-8")
    page.set_content(text.replace("{{problem}}", "The run is damaged."))
    page.add_style_tag(path=STATIC / "base.css")
    page.evaluate(RULES.read_text(encoding="utf-8"))
    assert page.evaluate(CHECK) == []
    page.close()


def place_on_map(page, place):
    """Where a place of the map is on the screen, while all of the map is in view."""
    box = page.locator(".map-box canvas").bounding_box()
    half = 0.47 * min(box["width"], box["height"])
    return (
        box["x"] + box["width"] / 2 + float(place[0]) * half,
        box["y"] + box["height"] / 2 + float(place[1]) * half,
    )


def test_an_action_is_reached_in_five_stops_and_the_arrows_move_in_grids(page, site):
    cluster = int(site.explorer.reviewed().order("size")[0])
    page.go(f"cluster/reviewed/{cluster}")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    stops = []
    for _ in range(5):
        page.keyboard.press("Tab")
        stops.append(page.evaluate("document.activeElement.dataset.action"))
    assert "merge-with" in stops
    assert "junk" in stops
    page.locator(".grid a.thumb").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(
        "[...document.querySelectorAll('.grid a.thumb')].indexOf(document.activeElement)"
    ) == 2  # fmt: skip
    page.keyboard.press("x")
    assert page.locator(".item.selected").count() == 1
    page.go("review")
    page.locator("[role=tab][aria-selected=true]").focus()
    page.keyboard.press("ArrowRight")
    page.until("location.hash === '#/review/pair'")


# What is done on each page: one of these is focused after at most five stops.
ACTIONS = {
    "": "a[href='#/review']",
    "clusters": ".card, .card input",
    "cluster/reviewed/{}": "[data-action=merge-with]",
    "point/3": "[data-action=move]",
    "tree": "[aria-label='Zoom in']",
    "map": "[aria-label='Zoom in'], .toolbar .button",
    "review": "[data-verdict=same]",
    "review/log": "[data-action=undo]",
    "compare": "main select",
}


@pytest.mark.parametrize("path", list(ACTIONS))
def test_every_page_has_an_action_within_five_stops(page, site, path):
    page.go(path.format(int(site.explorer.reviewed().order("size")[0])))
    page.until(f"document.querySelector({ACTIONS[path]!r})")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    stops = 1
    while not page.evaluate(f"document.activeElement.matches({ACTIONS[path]!r})"):
        page.keyboard.press("Tab")
        stops += 1
        assert stops <= 5


def test_20_doubtful_questions_take_one_click_and_20_keys(serve_run, open_page, tmp_path):
    from tests.explorer.small_runs import write_run

    site = serve_run(write_run(tmp_path / "doubtful", p_tau=0.8, max_levels=2))
    assert len(site.explorer.questions) >= 20
    page = open_page(site)
    page.go("")
    page.locator("a:has-text('Start reviewing')").click()
    page.until("document.querySelector('.question')")
    for number in range(20):
        asked = page.locator(".question").get_attribute("data-key")
        page.keyboard.press("sdk"[number % 3])
        page.until(f"document.querySelector('.question')?.dataset.key !== {asked!r}")
    assert len(site.explorer.review.done) == len(site.explorer.review.state.answers) == 20


def test_the_focus_stays_on_the_button_that_answers(page, site):
    page.go("review")
    page.locator("[data-verdict=skip]").focus()
    for _ in range(3):
        asked = page.locator(".question").get_attribute("data-key")
        page.keyboard.press("Enter")
        page.until(f"document.querySelector('.question')?.dataset.key !== {asked!r}")
        assert page.evaluate("document.activeElement.dataset.verdict") == "skip"
    assert len(site.explorer.review.done) == 3


def test_shift_selects_a_range(page, site):
    cluster = int(site.explorer.reviewed().order("size")[0])
    page.go(f"cluster/reviewed/{cluster}")
    page.locator(".item .pick").nth(1).click(force=True)
    page.locator(".item .pick").nth(5).click(force=True, modifiers=["Shift"])
    assert page.locator(".item.selected").count() == 5
    assert page.locator(".action-bar strong").inner_text() == "5 selected"


def test_members_are_selected_by_touch_and_nothing_is_cut_off(site, browser):
    context = browser.new_context(viewport={"width": 375, "height": 700}, has_touch=True,
                                  is_mobile=True)  # fmt: skip
    page = context.new_page()
    cluster = int(site.explorer.reviewed().order("size")[0])
    page.goto(f"{site.address}#/cluster/reviewed/{cluster}")
    page.wait_for_selector(".item .pick")
    assert page.evaluate("getComputedStyle(document.querySelector('.item .pick')).opacity") == "1"
    page.locator(".item .pick").nth(1).tap()
    page.wait_for_selector(".action-bar")
    wide = page.evaluate("""[...document.querySelectorAll('#nav a, .action-bar button, .button')]
        .filter(one => one.offsetParent)
        .map(one => [one.textContent, one.getBoundingClientRect().right])
        .filter(([, right]) => right > innerWidth + 1)""")
    assert wide == []
    context.close()


def test_each_page_has_its_own_title(page, site):
    titles = []
    for path in ("", "clusters", "cluster/reviewed/0", "point/3", "tree", "map", "review"):
        page.go(path)
        page.until("document.title.includes('run')")
        titles.append(page.title())
    assert len(set(titles)) == len(titles)
    assert "item-0003" in titles[3]


def test_two_tabs_follow_each_other(site, open_page):
    one, other = open_page(site), open_page(site)
    for page in (one, other):
        page.go("clusters")
    largest = int(site.explorer.reviewed().order("size")[0])
    one.keyboard.press("j")
    one.keyboard.press("n")
    one.locator("dialog input").fill("from the first tab")
    one.keyboard.press("Enter")
    one.after(lambda: site.explorer.review.state.names == {largest: "from the first tab"})
    other.until("document.querySelector('.card .title').textContent === 'from the first tab'")


def test_the_slider_cuts_the_tree_while_it_moves(page, site):
    page.go("tree")
    page.until("document.querySelector('.cut-strip span')")
    n_clusters = site.explorer.run.hierarchy.n_clusters()
    assert page.locator("[data-cut]").inner_text().startswith(f"{n_clusters} clusters")
    bars = "[...document.querySelectorAll('.icicle .bar')]"
    colours = f"JSON.stringify({bars}.map(bar => bar.style.background))"
    before = page.evaluate(colours)
    for p in (0.9, 0.1):
        page.locator("[type=range]").fill(str(p))
        expected = len(set(site.explorer.run.merge_tree.cut(p).tolist()))
        page.until(f"document.querySelector('[data-cut]').textContent.startsWith('{expected} ')")
    assert page.evaluate(colours) == before


def test_the_colour_of_a_bar_does_not_change_with_zoom(page):
    page.go("tree")
    page.until("document.querySelector('.icicle .bar')")
    top = page.locator(".icicle .level").first.locator(".bar:not(.rest)").first
    cluster = top.get_attribute("data-cluster")
    before = top.evaluate("one => one.style.background")
    top.click()
    page.until("location.hash.includes('end=')")
    after = page.locator(f".icicle .level:first-child [data-cluster='{cluster}']")
    assert after.evaluate("one => one.style.background") == before
    assert page.locator(".legend.scale").is_visible()


def test_a_click_on_the_map_pins_and_a_lasso_merges(page, site):
    page.go("map")
    page.until("document.querySelector('.map-box canvas[data-milliseconds]')")
    box = page.locator(".map-box canvas").bounding_box()
    layout = site.explorer.map
    x, y = place_on_map(page, layout.places[0])
    page.mouse.click(x, y)
    page.until("document.querySelector('aside .button')")
    shown = page.locator("aside strong").first.inner_text()
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.move(x + 60, y + 60)
    page.wait_for_timeout(300)
    assert page.locator("aside strong").first.inner_text() == shown
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    for far in (
        (box["width"] - 5, 5),
        (box["width"] - 5, box["height"] - 5),
        (5, box["height"] - 5),
    ):
        page.mouse.move(box["x"] + far[0], box["y"] + far[1])
    page.mouse.up()
    page.keyboard.up("Shift")
    page.wait_for_selector("aside [data-lasso]")
    assert int(page.locator("aside [data-lasso]").get_attribute("data-lasso")) == len(layout.points)
    page.locator("aside [data-action=merge]").click()
    page.after(lambda: len(site.explorer.review.done) == 1)
    assert len(set(site.explorer.review.state.labels[layout.points].tolist())) == 1


def test_items_in_a_lasso_are_moved_to_a_cluster_of_their_own(page, site):
    page.go("map")
    page.until("document.querySelector('.map-box canvas[data-frames]')")
    layout = site.explorer.map
    x, y = place_on_map(page, layout.places[5])
    near = np.abs(layout.places - layout.places[5]).max(axis=1)
    page.get_by_role("button", name="Select", exact=True).click()
    page.mouse.move(x - 6, y - 6)
    page.mouse.down()
    for dx, dy in ((6, -6), (6, 6), (-6, 6)):
        page.mouse.move(x + dx, y + dy)
    page.mouse.up()
    page.wait_for_selector("aside [data-lasso]")
    count = int(page.locator("aside [data-lasso]").get_attribute("data-lasso"))
    assert 1 <= count <= (near < 0.03).sum()
    page.locator("aside [data-action=move]").click()
    page.wait_for_selector(".picker .target")
    page.locator(".picker").get_by_text("new cluster", exact=False).first.click()
    page.keyboard.press("Enter")
    page.after(lambda: len(site.explorer.review.done) == 1)
    moved = site.explorer.review.done[0].payload["rows"]
    assert len(moved) == count
    assert int(layout.points[5]) in moved


def test_members_are_sorted_by_how_certain_they_are(page, site):
    cluster = int(site.explorer.reviewed().order("size")[0])
    page.go(f"cluster/reviewed/{cluster}")
    page.get_by_label("Sort").select_option("confidence")
    members = site.explorer.reviewed().members(cluster)
    least = site.explorer.run.hierarchy.confidence[members].min()
    first = "document.querySelector('.item').dataset.row"
    page.until(f"{first} !== '{members[0]}'")
    shown = site.explorer.run.hierarchy.confidence[int(page.evaluate(first))]
    assert shown == least


def test_an_image_is_shown_in_full_size(page, site):
    page.go("point/3")
    page.locator("[data-action=full-size]").click()
    page.until("document.querySelector('.full-size img')?.naturalWidth > 0")
    assert "/full?v=" in page.locator(".full-size img").get_attribute("src")


def test_most_mixed_clusters_are_doubtful(explorer):
    explorer.precompute()
    grouping = explorer.reviewed()
    mixed = (grouping.purity < 1) & (grouping.sizes > 1)
    assert mixed.sum() >= 3
    assert (grouping.doubt[mixed] >= 0.005).mean() > 0.8

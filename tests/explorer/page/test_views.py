"""The page in a browser: every view, every action of the review."""

import json
import re

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


def texts(page, selector):
    page.wait_for_selector(selector)
    return page.locator(selector).all_inner_texts()


def state_of(site):
    return site.explorer.review.state


def test_the_overview_shows_levels_sizes_scores_and_the_map(page, site):
    page.go("")
    page.until("document.querySelector('.tiles')")
    assert "252 items" in page.locator(".sub").first.inner_text()
    assert page.locator("table tbody tr").count() == site.explorer.run.n_levels
    assert page.locator("svg.chart .bar").count() > 1
    assert "pairwise F" in page.locator(".tiles").inner_text()
    page.until("document.querySelector('.map-box canvas[data-milliseconds]')")
    assert page.locator(".card").count() == 4
    assert "p_tau" in page.locator("main").inner_text()


def test_clusters_are_sorted_filtered_searched_and_paged(page, site):
    page.go("clusters")
    sizes = [int(text) for text in texts(page, ".card .count")]
    assert sizes == sorted(sizes, reverse=True)
    page.locator("select[aria-label=Level]").select_option("0")
    page.until("document.querySelector('.sub').textContent.includes('level 0')")
    first = texts(page, ".card .title")
    page.keyboard.press("]")
    page.until(f"document.querySelector('.card .title').textContent !== {first[0]!r}")
    assert "25–" in page.locator(".pager").inner_text()
    page.locator("input[aria-label='Find clusters']").fill("item-0042")
    page.keyboard.press("Enter")
    page.until("document.querySelectorAll('.card').length === 1")
    cluster = site.explorer.run.hierarchy.labels(0)[42]
    assert texts(page, ".card .title") == [f"Cluster {cluster}"]
    page.until("document.querySelector('.card img').naturalWidth > 0")


def test_several_clusters_are_merged_by_keys(page, site):
    page.go("clusters")
    page.until("document.querySelector('.card')")
    for key in ("j", "x", "j", "x"):
        page.keyboard.press(key)
    assert page.locator(".action-bar strong").inner_text() == "2 selected"
    chosen = [int(one) for one in page.locator(".card.selected").evaluate_all(
        "cards => cards.map(card => card.dataset.cluster)")]  # fmt: skip
    page.keyboard.press("m")
    page.after(lambda: len(set(state_of(site).labels[site.explorer.base.peaks[chosen]])) == 1)
    page.until("document.querySelector('.card .chip.accent')")
    assert page.locator(".action-bar").count() == 0
    page.locator(".toast .button").click()
    page.after(lambda: not site.explorer.review.done)


def test_a_cluster_is_named_and_marked_as_junk_from_its_card(page, site, hostile_text):
    page.go("clusters")
    page.until("document.querySelector('.card')")
    page.keyboard.press("j")
    page.keyboard.press("n")
    page.locator("dialog input").fill(hostile_text)
    page.keyboard.press("Enter")
    shown = "document.querySelector('.card .title').textContent"
    page.until(f"{shown} === {json.dumps(hostile_text)}")
    assert page.title() != "owned"
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("b")
    page.until("document.querySelector('.card.junk')")
    assert len(state_of(site).junk) == 1


def test_an_opened_cluster_shows_parts_members_and_neighbours(page, site):
    cluster = int(site.explorer.reviewed().order("size")[0])
    page.go(f"cluster/reviewed/{cluster}")
    page.until("document.querySelector('.item')")
    size = int(site.explorer.reviewed().sizes[cluster])
    assert page.locator(".item").count() == min(size, 60)
    assert page.locator(".part").count() >= 2
    assert "likely" in page.locator(".part").nth(1).inner_text()
    assert page.locator(".near").count() >= 1
    page.locator("select[aria-label='Split into']").select_option("0")
    page.until("location.hash.includes('at=0')")
    page.until("document.querySelector('.part')")
    page.go("cluster/0/0")
    page.until("document.querySelector('h1')?.textContent === 'Cluster 0'")
    assert "read only" in page.locator("main").inner_text()


def test_a_cluster_is_split_and_its_parts_named(page, site):
    cluster = int(site.explorer.reviewed().order("size")[0])
    page.go(f"cluster/reviewed/{cluster}")
    page.locator(".part input").nth(1).check()
    page.locator("[data-action=split-one]").click()
    page.wait_for_selector("dialog")
    inputs = page.locator("dialog input")
    assert inputs.count() == 2
    inputs.nth(0).fill("the rest")
    inputs.nth(1).fill("the part")
    page.locator("dialog .primary").click()
    page.after(lambda: len(state_of(site).names) == 2)
    new = site.explorer.reviewed().n_groups - 1
    assert state_of(site).names == {cluster: "the rest", new: "the part"}
    page.until("document.querySelector('.name-input')?.value === 'the rest'")


def test_each_selected_part_becomes_a_separate_cluster(page, site):
    cluster = int(site.explorer.reviewed().order("size")[0])
    before = site.explorer.reviewed().n_groups
    page.go(f"cluster/reviewed/{cluster}?at=0")
    page.locator(".part input").nth(1).check()
    page.locator(".part input").nth(2).check()
    page.locator("[data-action=split-each]").click()
    page.wait_for_selector("dialog")
    page.keyboard.press("Escape")
    page.until("!document.querySelector('dialog')")
    assert site.explorer.reviewed().n_groups == before + 2


def test_items_are_moved_to_another_and_to_a_new_cluster(page, site):
    order = site.explorer.reviewed().order("size")
    cluster, other = int(order[0]), int(order[1])
    page.go(f"cluster/reviewed/{cluster}")
    page.locator(".item .pick").nth(2).check(force=True)
    page.locator(".item .pick").nth(3).check(force=True)
    page.locator("[data-action=move]").click()
    page.locator("dialog input").fill(f"#{other}")
    page.until("document.querySelectorAll('.target').length === 1")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    size = int(site.explorer.base.sizes[other])
    page.after(lambda: site.explorer.reviewed().sizes[other] == size + 2)
    page.until("!document.querySelector('.action-bar')")
    before = site.explorer.reviewed().n_groups
    page.locator(".item .pick").nth(1).check(force=True)
    page.locator("[data-action=move-new]").click()
    page.after(lambda: site.explorer.reviewed().n_groups == before + 1)


def test_an_opened_cluster_is_named_marked_as_junk_and_merged(page, site):
    grouping = site.explorer.reviewed()
    cluster = next(
        int(group)
        for group in grouping.order("size")
        if site.explorer.run.graph.nearest_clusters(grouping.rows_of(group), grouping.labels, 3)
    )
    page.go(f"cluster/reviewed/{cluster}")
    page.until("document.querySelector('.name-input')")
    page.keyboard.press("n")
    page.keyboard.type("by hand")
    page.keyboard.press("Enter")
    page.after(lambda: state_of(site).names == {cluster: "by hand"})
    page.keyboard.press("b")
    page.until("document.querySelector('.page-head .chip.bad')")
    assert state_of(site).junk == {cluster}
    page.locator("[data-merge]").first.click()
    page.after(lambda: [event.kind for event in site.explorer.review.done][-1] == "merge")


def test_an_opened_point_shows_neighbours_and_its_path(page, site):
    row = 17
    page.go(f"point/{row}")
    assert texts(page, "h1") == ["item-0017"]
    assert page.locator("main table").nth(1).locator("tbody tr").count() == 6
    assert "Path to the most typical item" in page.locator("main").inner_text()
    before = site.explorer.reviewed().n_groups
    page.locator("[data-action=move]").click()
    page.locator("dialog [data-action=new]").click()
    page.after(lambda: site.explorer.reviewed().n_groups == before + 1)
    page.locator("main table").nth(1).locator("tbody a").nth(1).click()
    page.until("document.querySelector('h1')?.textContent !== 'item-0017'")


def test_the_hierarchy_zooms_in_and_out_and_opens(page, site):
    page.go("tree")
    page.until("document.querySelector('.icicle .bar')")
    assert page.locator(".icicle .level").count() == site.explorer.run.n_levels
    first = page.locator(".icicle .level").first.locator(".bar:not(.rest)").first
    cluster = first.get_attribute("data-cluster")
    first.click()
    page.until("location.hash.includes('end=')")
    assert f"#{cluster} of level" in page.locator(".crumbs").inner_text()
    page.keyboard.press("-")
    page.keyboard.press("0")
    page.until("!location.hash.includes('end=')")
    page.locator(".icicle .bar:not(.rest)").first.dblclick()
    page.until("location.hash.includes('cluster/')")


def test_a_double_click_opens_a_bar_that_is_redrawn_during_the_click(page):
    page.go("tree")
    page.until("document.querySelector('.icicle .bar')")
    bar = page.locator(".icicle .bar:not(.rest)").first
    cluster, place = bar.get_attribute("data-cluster"), bar.bounding_box()
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    page.evaluate("""document.querySelector('.icicle').addEventListener('mousedown', (event) => {
        if (event.detail === 2) event.currentTarget.replaceChildren();
    })""")
    for click in (1, 2):
        page.mouse.down(click_count=click)
        page.mouse.up(click_count=click)
    page.until(f"location.hash.includes('/{cluster}') && location.hash.includes('cluster/')")


def test_the_map_has_colours_zooms_and_describes_a_peak(page, site):
    page.go("map")
    canvas = page.locator(".map-box canvas")
    page.until("document.querySelector('.map-box canvas[data-milliseconds]')")
    count = len(site.explorer.run.hierarchy.peaks(0))
    assert f"{count} points" in page.locator(".sub").inner_text()
    pixels = "document.querySelector('.map-box canvas').toDataURL()"
    seen = [page.evaluate(pixels)]

    def wait_for_new_pixels():
        page.until(f"!{json.dumps(seen)}.includes({pixels})")
        seen.append(page.evaluate(pixels))

    for colour in ("level", "confidence"):
        page.locator("select[aria-label=Colour]").select_option(colour)
        wait_for_new_pixels()
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("+")
    wait_for_new_pixels()
    assert len(set(seen)) == 4
    page.keyboard.press("0")
    layout = site.explorer.map
    box = canvas.bounding_box()
    half = 0.47 * min(box["width"], box["height"])
    x = box["x"] + box["width"] / 2 + float(layout.places[0, 0]) * half
    y = box["y"] + box["height"] / 2 + float(layout.places[0, 1]) * half
    page.mouse.move(x, y)
    page.until("document.querySelector('aside .button')")
    page.locator("aside .button").click()
    page.until("location.hash.includes('cluster/reviewed')")


@pytest.mark.parametrize("kind", ["all", "pair", "part"])
def test_a_question_is_answered_with_one_key(page, site, kind):
    page.go(f"review/{kind}")
    verdicts = []
    for key, verdict in (("s", "same"), ("d", "different"), ("k", "skip")):
        page.until("document.querySelector('.question')")
        asked = page.locator(".question").get_attribute("data-key")
        assert page.locator(".side").count() == 1
        assert page.locator(".piece-asked").count() == len(asked.split("."))
        page.keyboard.press(key)
        page.until(f"document.querySelector('.question')?.dataset.key !== {json.dumps(asked)}")
        verdicts.append(state_of(site).answers.get(asked))
        assert verdicts[-1] == verdict
    page.keyboard.press("u")
    page.after(lambda: len(state_of(site).answers) == 2)
    page.locator("[data-verdict=same]").click()
    page.after(lambda: len(state_of(site).answers) == 3)


def test_start_reviewing_opens_the_most_valuable_question(page, site):
    page.go("")
    page.locator("a:has-text('Start reviewing')").click()
    page.until("document.querySelector('.question')")
    first = site.explorer.questions[0]
    assert page.locator(".question").get_attribute("data-key") == first.key
    for _ in range(20):
        asked = page.locator(".question").get_attribute("data-key")
        page.keyboard.press("d")
        page.until(f"document.querySelector('.question')?.dataset.key !== {json.dumps(asked)}")
        if not page.locator(".question").count():
            break
    assert len(state_of(site).answers) == len(site.explorer.review.done) > 5


def test_exceptions_are_marked_with_their_number(page, site):
    question = next(one for one in site.explorer.questions if len(one.pieces) > 1)
    page.go(f"review/{question.kind}")
    asked = page.locator(".question").get_attribute("data-key")
    shown = next(one for one in site.explorer.questions if one.key == asked)
    if len(shown.pieces) < 2:
        pytest.skip("the first question of this kind has one piece")
    _, pieces = site.explorer.find_question(asked)
    page.keyboard.press("2")
    assert page.locator(".piece-asked.exception").count() == 1
    page.keyboard.press("s")
    page.after(lambda: asked in state_of(site).answers)
    payload = site.explorer.review.done[-1].payload
    assert payload["asked"]["said"][1] is False
    assert sum(payload["asked"]["said"]) == len(pieces) - 1


def test_the_log_has_undo_and_redo(page, site):
    site.explorer.act("name", {"group": 0, "name": "first"})
    site.explorer.act("merge", {"groups": [0, 1]})
    page.go("review/log")
    assert page.locator(".log-line").count() == 2
    page.locator("[data-action=undo]").click()
    page.until("document.querySelector('.log-line.gone')")
    assert len(site.explorer.review.done) == 1
    page.locator("[data-action=redo]").click()
    page.after(lambda: len(site.explorer.review.done) == 2)
    page.until("document.querySelectorAll('.log-line').length === 4")
    page.keyboard.press("Control+z")
    page.after(lambda: len(site.explorer.review.done) == 1)


def test_a_conflict_is_solved_with_one_click(page, site):
    explorer = site.explorer
    rows = explorer.base.rows_of(int(explorer.base.order("size")[0]))
    a, b = int(rows[0]), int(rows[-1])
    conflict = {"kind": "different", "text": "a and b <b>were</b> different",
                "clusters": [1], "a": a, "b": b}  # fmt: skip
    explorer._base_id = explorer.store.add_base(explorer._own_base(), (), [conflict, conflict])
    page.go("review/conflicts")
    assert "a and b <b>were</b> different" in page.locator(".diff").first.inner_text()
    assert "earlier decisions" in page.locator("#banner").inner_text()
    page.locator("[data-choice=split]").first.click()
    page.after(lambda: state_of(site).labels[a] != state_of(site).labels[b])
    page.until("!document.querySelector('.diff')")
    assert explorer.carried_conflicts() == []
    page.keyboard.press("u")
    page.until("document.querySelectorAll('.diff').length === 2")
    page.locator("[data-choice=together]").first.click()
    page.until("document.querySelectorAll('.diff').length === 1")


@pytest.mark.parametrize("what", ["labels", "pairs"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "json"])
def test_exports_are_downloaded(page, site, what, kind):
    site.explorer.act("merge", {"groups": [0, 1]})
    page.go("review/export")
    with page.expect_download() as waiting:
        page.locator(f"[data-export={what}-{kind}]").click()
    assert waiting.value.suggested_filename == f"{what}.{kind}"
    assert waiting.value.path().stat().st_size > 10


def test_a_comparison_lists_its_differences(page, site):
    page.go("compare")
    page.until("document.querySelector('.matrix')")
    assert page.locator(".matrix tbody tr").count() >= 1
    page.until("document.querySelector('.diff, .empty')")
    page.locator("[data-tab=merge]").click()
    page.until("location.hash.includes('kind=merge')")
    page.locator("select[aria-label=With]").select_option("run:run")
    page.until("document.querySelector('.tiles')?.textContent.includes('1.00')")
    page.locator("select[aria-label=With]").select_option("labels")
    page.settle()
    page.locator(".matrix tbody a").first.click()
    page.until("location.hash.includes('cluster/reviewed')")


def test_search_finds_points_and_clusters_by_keys(page, site):
    site.explorer.act("name", {"group": 2, "name": "tulips"})
    page.go("")
    page.until("document.querySelector('.view')")
    page.keyboard.press("/")
    page.keyboard.type("tulip")
    page.wait_for_selector("#found a")
    page.keyboard.press("Enter")
    page.until("location.hash === '#/cluster/reviewed/2'")
    page.until("document.querySelector('.name-input')")
    page.keyboard.press("/")
    page.locator("#search").fill("item-0033")
    page.wait_for_selector("#found a[href='#/point/33']")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.until("location.hash === '#/point/33'")


def test_keys_open_every_view_and_are_listed(page):
    page.go("")
    for key, view in (("c", "clusters"), ("h", "tree"), ("m", "map"), ("r", "review"),
                      ("p", "compare"), ("o", "overview")):  # fmt: skip
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.until(f"document.querySelector('.view[data-view={view}]')")
        assert page.locator("#nav [aria-current=page]").get_attribute("data-view") == view
    page.keyboard.press("?")
    assert "Keys" in page.locator("dialog").inner_text()


def test_the_theme_is_kept(page):
    page.go("")
    page.until("document.querySelector('.view')")
    theme = "document.documentElement.dataset.theme"
    before = page.evaluate(theme)
    page.keyboard.press("t")
    assert page.evaluate(theme) != before
    page.reload()
    page.until("document.querySelector('.view')")
    assert page.evaluate(theme) != before


def test_every_view_fits_a_small_screen(page):
    page.set_viewport_size({"width": 375, "height": 700})
    for path in ("", "clusters", "cluster/reviewed/0", "point/3", "tree", "map", "review",
                 "review/log", "compare"):  # fmt: skip
        page.go(path)
        page.until("document.querySelector('.view')")
        page.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 376, path


def test_labels_that_contain_markup_are_shown_as_text(page, site, hostile_text):
    row = int((site.explorer.run.items.labels.codes == 0).argmax())
    assert site.explorer.run.items.label_of(row) == hostile_text
    for path in (f"point/{row}", f"cluster/reviewed/{site.explorer.base.labels[row]}", "compare"):
        page.go(path)
        page.until("document.querySelector('.view')")
        page.until(f"document.body.innerText.includes({json.dumps(hostile_text)})")
        assert page.title() != "owned"
        assert page.locator("img[src=x]").count() == 0


def test_the_api_page_lists_every_route(page, site):
    page.goto(site.address + "api")
    page.wait_for_selector(".method")
    shown = page.locator("main").inner_text()
    assert "/api/clusters/{level}/{cluster}" in shown
    assert re.search(r"POST\s*/api/review/\{kind\}", shown)


def test_a_server_that_does_not_answer_is_reported(site, browser):
    page = browser.new_page()
    page.goto(f"{site.address}#/clusters")
    page.wait_for_selector(".card")
    page.route("**/api/**", lambda route: route.abort())
    page.goto(f"{site.address}#/review/log")
    page.wait_for_selector("[role=alert]")
    assert "does not answer" in page.locator("[role=alert]").inner_text()
    page.close()

"""The page while it waits for the server: nothing the user does meanwhile is lost or overtaken."""

import json

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


class Held:
    """Requests that are kept from the server until they are let go."""

    def __init__(self, page, pattern):
        self.page, self.pattern = page, pattern
        self.holding, self.routes = True, []
        page.route(pattern, self.meet)

    def meet(self, route):
        if self.holding:
            self.routes.append(route)
        else:
            route.continue_()

    def wait(self):
        for _ in range(1500):
            if self.routes:
                return
            self.page.wait_for_timeout(20)
        pytest.fail(f"the page did not ask for {self.pattern}")

    def let_go(self):
        """Let all go on, and those to come."""
        self.holding = False
        for route in self.routes:
            route.continue_()


def largest(site):
    return int(site.explorer.reviewed().order("size")[0])


def names(site):
    return site.explorer.review.state.names


def text_of(page, selector):
    return page.evaluate(f"document.querySelector({json.dumps(selector)})?.textContent")


def test_items_ticked_while_the_view_is_drawn_again_stay_ticked(page, site):
    page.go(f"cluster/reviewed/{largest(site)}")
    held = Held(page, "**/members*")
    page.keyboard.press("b")
    held.wait()
    box = page.locator(".item .pick").nth(1)
    label = box.get_attribute("aria-label")
    box.check(force=True)
    assert text_of(page, ".action-bar strong") == "1 selected"
    held.let_go()
    page.until("document.querySelector('.page-head .chip.bad')")
    assert text_of(page, ".action-bar strong") == "1 selected"
    assert page.locator(f".item.selected .pick[aria-label='{label}']").is_checked()
    before = site.explorer.reviewed().n_groups
    page.locator("[data-action=move-new]").click()
    page.after(lambda: site.explorer.reviewed().n_groups == before + 1)
    assert page.locator(".action-bar, .item.selected").count() == 0


def test_an_item_ticked_while_others_are_moved_stays_ticked(page, site):
    page.go(f"cluster/reviewed/{largest(site)}")
    page.locator(".item .pick").nth(2).check(force=True)
    held = Held(page, "**/api/review/move")
    page.locator("[data-action=move-new]").click()
    held.wait()
    box = page.locator(".item .pick").nth(1)
    label = box.get_attribute("aria-label")
    box.check(force=True)
    held.let_go()
    page.until("document.querySelector('.action-bar strong').textContent === '1 selected'")
    assert page.locator(".item.selected .pick").get_attribute("aria-label") == label
    assert page.locator(".item .pick:checked").count() == 1


def test_a_tick_goes_when_its_item_has_left_the_cluster(page, site):
    cluster = largest(site)
    page.go(f"cluster/reviewed/{cluster}")
    rows = [int(one.get_attribute("data-row")) for one in page.locator(".item").all()[1:3]]
    for row in rows:
        page.locator(f".item[data-row='{row}'] .pick").check(force=True)
    site.explorer.act("move", {"rows": rows[:1]})
    page.keyboard.press("b")
    page.until("document.querySelector('.page-head .chip.bad')")
    assert text_of(page, ".action-bar strong") == "1 selected"
    assert page.locator(".item.selected").get_attribute("data-row") == str(rows[1])


def test_ticked_clusters_and_parts_outlive_an_undo(page, site):
    cluster = largest(site)
    site.explorer.act("name", {"group": cluster, "name": "first"})
    site.explorer.act("name", {"group": cluster, "name": "second"})
    page.go("clusters")
    page.locator(".card input").nth(1).check()
    page.locator(".card input").nth(2).check()
    page.keyboard.press("u")
    page.until("document.querySelector('.card .title').textContent === 'first'")
    assert text_of(page, ".action-bar strong") == "2 selected"
    assert page.locator(".card.selected input:checked").count() == 2
    page.go(f"cluster/reviewed/{cluster}")
    assert page.locator(".action-bar").count() == 0
    page.locator(".part input").nth(1).check()
    page.keyboard.press("u")
    page.until("document.querySelector('.name-input').value === ''")
    assert page.locator(".part.selected input:checked").count() == 1
    assert page.locator("[data-action=split-one]").is_enabled()


def test_ticks_do_not_follow_to_another_cluster(page, site):
    first, second = (int(one) for one in site.explorer.reviewed().order("size")[:2])
    page.go(f"cluster/reviewed/{first}")
    page.locator(".item .pick").nth(1).check(force=True)
    for cluster in (second, first):
        page.go(f"cluster/reviewed/{cluster}")
        assert page.locator(".action-bar, .item.selected").count() == 0


def test_a_view_that_is_drawn_again_slowly_stays_before_the_user(page, site):
    page.go(f"cluster/reviewed/{largest(site)}")
    held = Held(page, "**/nearest*")
    page.keyboard.press("b")
    held.wait()
    page.wait_for_timeout(400)  # a view that is opened says "Loading…" after 150 ms
    assert page.locator(".loading").count() == 0
    assert page.locator(".item").count() > 1
    assert page.evaluate("Boolean(document.getElementById('main').dataset.busy)")
    held.let_go()
    page.until("document.querySelector('.page-head .chip.bad')")


def test_a_name_half_typed_is_typed_on_when_the_view_is_drawn_again(page, site):
    cluster = largest(site)
    page.go(f"cluster/reviewed/{cluster}")
    held = Held(page, "**/nearest*")
    page.keyboard.press("b")
    held.wait()
    page.keyboard.press("n")
    page.keyboard.type("by ha")
    held.let_go()
    page.until("document.querySelector('.page-head .chip.bad')")
    assert names(site) == {}
    page.keyboard.type("nd")
    page.keyboard.press("Enter")
    page.after(lambda: names(site) == {cluster: "by hand"})
    assert site.explorer.review.state.junk == {cluster}


def test_a_name_typed_before_and_confirmed_after_is_sent_once(page, site):
    cluster = largest(site)
    page.go(f"cluster/reviewed/{cluster}")
    held = Held(page, "**/nearest*")
    page.keyboard.press("b")
    held.wait()
    page.keyboard.press("n")
    page.keyboard.type("by hand")
    held.let_go()
    page.until("document.querySelector('.page-head .chip.bad')")
    page.keyboard.press("Enter")
    page.after(lambda: names(site) == {cluster: "by hand"})
    assert [event.kind for event in site.explorer.review.done] == ["junk", "name"]


def test_a_list_that_comes_late_does_not_replace_a_newer_one(page):
    page.go("clusters")
    held = Held(page, "**/api/clusters?level=0*")
    page.locator("select[aria-label=Level]").select_option("0")
    held.wait()
    page.locator("select[aria-label=Level]").select_option("1")
    page.wait_for_selector(".sub:has-text('level 1')")
    shown = page.locator(".card .title").all_inner_texts()
    held.let_go()
    page.settle()
    assert "level 1" in text_of(page, ".sub")
    assert page.locator(".card .title").all_inner_texts() == shown


def test_a_comparison_that_comes_late_does_not_replace_a_newer_one(page):
    page.go("compare")
    held = Held(page, "**/api/compare?key=run*")
    page.locator("select[aria-label=With]").select_option("run:run")
    held.wait()
    page.locator("select[aria-label=With]").select_option("labels")
    page.wait_for_selector(".tiles")
    shown = text_of(page, ".tiles")
    held.let_go()
    page.settle()
    assert text_of(page, ".tiles") == shown


def test_an_answer_for_a_view_that_was_left_does_not_change_the_address(page):
    page.go("tree")
    held = Held(page, "**/api/tree?*")
    page.locator(".icicle .level").first.locator(".bar:not(.rest)").first.click()
    held.wait()
    page.keyboard.press("g")
    page.keyboard.press("c")
    page.wait_for_selector(".card")
    held.let_go()
    page.settle()
    assert page.evaluate("location.hash") == "#/clusters"


def test_what_is_chosen_while_the_view_is_drawn_again_holds(page, site):
    site.explorer.act("name", {"group": largest(site), "name": "first"})
    page.go("clusters")
    held = Held(page, "**/api/overview")
    page.keyboard.press("u")
    held.wait()
    page.locator("select[aria-label=Level]").select_option("0")
    held.let_go()
    page.settle()
    assert "level 0" in text_of(page, ".sub")
    assert page.locator("select[aria-label=Level]").input_value() == "0"
    assert "level=0" in page.evaluate("location.hash")


def test_a_question_answered_while_an_undo_is_drawn_is_not_asked_again(page, site):
    page.go("review/pair")
    page.keyboard.press("k")
    page.after(lambda: len(site.explorer.review.done) == 1)
    held = Held(page, "**/api/review/queue*")
    page.keyboard.press("u")
    held.wait()
    answering = Held(page, "**/api/review/answer")
    asked = page.locator(".question").get_attribute("data-key")
    page.keyboard.press("k")
    answering.wait()
    held.let_go()
    page.wait_for_timeout(300)
    answering.let_go()
    page.after(lambda: asked in site.explorer.review.state.answers)
    assert page.locator(".question").get_attribute("data-key") != asked


def test_the_link_to_the_content_leads_to_it(page):
    page.go("clusters")
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    assert page.locator(".card").count() > 1

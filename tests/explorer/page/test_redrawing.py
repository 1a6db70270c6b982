"""The page while it waits for the server: no input is lost, no late answer replaces a newer one."""

import json

import pytest

from tests.explorer.serving import Held

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


def largest(site):
    return int(site.explorer.reviewed().order("size")[0])


def names(site):
    return site.explorer.review.state.names


def text_of(page, selector):
    return page.evaluate(f"document.querySelector({json.dumps(selector)})?.textContent")


def test_items_ticked_during_a_redraw_stay_ticked(page, site):
    page.go(f"cluster/reviewed/{largest(site)}")
    held = Held(page, "**/members*")
    page.keyboard.press("b")
    held.wait()
    box = page.locator(".item .pick").nth(1)
    label = box.get_attribute("aria-label")
    box.check(force=True)
    assert text_of(page, ".action-bar strong") == "1 selected"
    held.release()
    page.until("document.querySelector('.page-head .chip.bad')")
    assert text_of(page, ".action-bar strong") == "1 selected"
    assert page.locator(f".item.selected .pick[aria-label='{label}']").is_checked()
    before = site.explorer.reviewed().n_groups
    page.locator("[data-action=move-new]").click()
    page.after(lambda: site.explorer.reviewed().n_groups == before + 1)
    assert page.locator(".action-bar, .item.selected").count() == 0


def test_an_item_ticked_during_a_move_of_others_stays_ticked(page, site):
    page.go(f"cluster/reviewed/{largest(site)}")
    page.locator(".item .pick").nth(2).check(force=True)
    held = Held(page, "**/api/review/move")
    page.locator("[data-action=move-new]").click()
    held.wait()
    box = page.locator(".item .pick").nth(1)
    label = box.get_attribute("aria-label")
    box.check(force=True)
    held.release()
    page.until("document.querySelector('.action-bar strong').textContent === '1 selected'")
    assert page.locator(".item.selected .pick").get_attribute("aria-label") == label
    assert page.locator(".item .pick:checked").count() == 1


def test_a_tick_is_removed_when_its_item_leaves_the_cluster(page, site):
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


def test_ticked_clusters_and_parts_survive_an_undo(page, site):
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


def test_ticks_are_not_kept_for_another_cluster(page, site):
    first, second = (int(one) for one in site.explorer.reviewed().order("size")[:2])
    page.go(f"cluster/reviewed/{first}")
    page.locator(".item .pick").nth(1).check(force=True)
    for cluster in (second, first):
        page.go(f"cluster/reviewed/{cluster}")
        assert page.locator(".action-bar, .item.selected").count() == 0


def test_a_view_stays_visible_during_a_slow_redraw(page, site):
    page.go(f"cluster/reviewed/{largest(site)}")
    held = Held(page, "**/nearest*")
    page.keyboard.press("b")
    held.wait()
    page.wait_for_timeout(400)  # a newly opened view shows "Loading…" after 150 ms
    assert page.locator(".loading").count() == 0
    assert page.locator(".item").count() > 1
    assert page.evaluate("Boolean(document.getElementById('main').dataset.busy)")
    held.release()
    page.until("document.querySelector('.page-head .chip.bad')")


def test_an_unfinished_name_survives_a_redraw(page, site):
    cluster = largest(site)
    page.go(f"cluster/reviewed/{cluster}")
    held = Held(page, "**/nearest*")
    page.keyboard.press("b")
    held.wait()
    page.keyboard.press("n")
    page.keyboard.type("by ha")
    held.release()
    page.until("document.querySelector('.page-head .chip.bad')")
    assert names(site) == {}
    page.keyboard.type("nd")
    page.keyboard.press("Enter")
    page.after(lambda: names(site) == {cluster: "by hand"})
    assert site.explorer.review.state.junk == {cluster}


def test_a_name_confirmed_after_a_redraw_is_sent_once(page, site):
    cluster = largest(site)
    page.go(f"cluster/reviewed/{cluster}")
    held = Held(page, "**/nearest*")
    page.keyboard.press("b")
    held.wait()
    page.keyboard.press("n")
    page.keyboard.type("by hand")
    held.release()
    page.until("document.querySelector('.page-head .chip.bad')")
    page.keyboard.press("Enter")
    page.after(lambda: names(site) == {cluster: "by hand"})
    assert [event.kind for event in site.explorer.review.done] == ["junk", "name"]


def test_a_late_list_does_not_replace_a_newer_one(page):
    page.go("clusters")
    held = Held(page, "**/api/clusters?level=0*")
    page.locator("select[aria-label=Level]").select_option("0")
    held.wait()
    page.locator("select[aria-label=Level]").select_option("1")
    page.wait_for_selector(".sub:has-text('level 1')")
    shown = page.locator(".card .title").all_inner_texts()
    held.release()
    page.settle()
    assert "level 1" in text_of(page, ".sub")
    assert page.locator(".card .title").all_inner_texts() == shown


def test_a_late_comparison_does_not_replace_a_newer_one(page):
    page.go("compare")
    held = Held(page, "**/api/compare?key=run*")
    page.locator("select[aria-label=With]").select_option("run:run")
    held.wait()
    page.locator("select[aria-label=With]").select_option("labels")
    page.wait_for_selector(".tiles")
    shown = text_of(page, ".tiles")
    held.release()
    page.settle()
    assert text_of(page, ".tiles") == shown


def test_a_late_answer_does_not_change_the_address_of_another_view(page):
    page.go("tree")
    held = Held(page, "**/api/tree?*")
    page.locator(".icicle .level").first.locator(".bar:not(.rest)").first.click()
    held.wait()
    page.keyboard.press("g")
    page.keyboard.press("c")
    page.wait_for_selector(".card")
    held.release()
    page.settle()
    assert page.evaluate("location.hash") == "#/clusters"


def test_a_choice_made_during_a_redraw_is_kept(page, site):
    site.explorer.act("name", {"group": largest(site), "name": "first"})
    page.go("clusters")
    held = Held(page, "**/api/overview")
    page.keyboard.press("u")
    held.wait()
    page.locator("select[aria-label=Level]").select_option("0")
    held.release()
    page.settle()
    assert "level 0" in text_of(page, ".sub")
    assert page.locator("select[aria-label=Level]").input_value() == "0"
    assert "level=0" in page.evaluate("location.hash")


def test_a_question_answered_during_the_redraw_of_an_undo_is_not_shown_again(page, site):
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
    held.release()
    page.wait_for_timeout(300)
    answering.release()
    page.after(lambda: asked in site.explorer.review.state.answers)
    assert page.locator(".question").get_attribute("data-key") != asked


def test_the_skip_link_focuses_the_content(page):
    page.go("tree")
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    assert page.locator(".bar").count() > 1
    page.go("clusters")
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    first = page.locator(".card").first.get_attribute("data-cluster")
    assert page.evaluate("document.activeElement.dataset.cluster") == first

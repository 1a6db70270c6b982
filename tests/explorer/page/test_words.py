"""What the pages say: words that need no knowledge of the method, numbers rounded in one way."""

import re

import numpy as np
import pytest

from hilander.explorer.partition.summary import show_share

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

PAGES = ("", "clusters", "clusters?level=0", "cluster/reviewed/{}", "cluster/0/3", "point/3",
         "tree", "map", "review", "review/pair", "review/log", "compare")  # fmt: skip
JARGON = re.compile(r"\b(linkage|affinity|peaks?|tau|hangs?|to #\d+|branch\w*|node)\b", re.I)
NUMBER = re.compile(r"(?<![\d.,#-])\d+\.\d+(?![\d.])")


@pytest.fixture
def largest(site):
    return int(site.explorer.reviewed().order("size")[0])


def read(page, path, largest):
    page.go(path.format(largest))
    if path == "map":
        page.until("document.querySelector('.map-box canvas[data-frames]')")
    # The settings of the run are quoted as they are.
    page.evaluate("document.querySelectorAll('dl.facts, code').forEach(one => one.remove())")
    return page.locator("#main").inner_text()


def test_the_pages_use_no_words_of_the_method(page, site, largest):
    site.explorer.act("name", {"group": largest, "name": "tulips"})
    found = {path: JARGON.findall(read(page, path, largest)) for path in PAGES}
    assert {path: words for path, words in found.items() if words} == {}


def test_probabilities_have_two_digits_and_scores_three(page, site, largest):
    allowed = {"": {2, 3}, "compare": {2, 3}}
    for path in PAGES:
        digits = {len(one.split(".")[1]) for one in NUMBER.findall(read(page, path, largest))}
        assert digits <= allowed.get(path, {2}), path


def test_a_number_is_rounded_in_one_way_on_pages_and_in_reports(page):
    page.go("")
    values = [round(float(value), 4) for value in np.arange(0, 1.00005, 0.0001)]
    shown = page.evaluate(
        "async values => { const { share } = await import(new URL('static/js/dom.js', "
        "location.origin)); return values.map(share); }",
        values,
    )
    assert shown == [show_share(value) for value in values]


def test_a_cluster_has_the_same_doubt_on_every_page(page, site):
    explorer = site.explorer
    cluster = int(explorer.reviewed().order("doubt")[0])
    doubt = show_share(explorer.reviewed().doubt[cluster])
    assert doubt != "0.00"
    page.go("clusters?sort=doubt")
    card = page.locator(f".card[data-cluster='{cluster}']")
    assert card.locator(".meter.doubt .amount").inner_text() == doubt
    page.go(f"cluster/reviewed/{cluster}")
    assert f"doubt {doubt} " in page.locator(".page-head .sub").inner_text()
    page.go("")
    first = page.locator(f".card[data-cluster='{cluster}'] .meter.doubt .amount")
    assert first.inner_text() == doubt

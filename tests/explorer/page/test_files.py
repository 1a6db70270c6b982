"""Pages that are files: reports, and the page of the demo. On a phone, light and dark."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from hilander.cli.demo_page import _PICTURES, _page
from hilander.comparison.report import write_comparison_report
from hilander.explorer.report.writer import write_report
from hilander.explorer.session.opening import open_explorer
from hilander.metrics.report import score_clustering
from tests.comparison.test_tables import BETTER, GOOD
from tests.explorer.page.test_access import CHECK, RULES
from tests.explorer.serving import PHONE

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

# Elements that reach beyond the screen, unless they are in a box that scrolls.
TOO_WIDE = """() => [...document.querySelectorAll('body *')]
    .filter(one => !one.closest('.scroll'))
    .filter(one => one.getBoundingClientRect().right > innerWidth + 1)
    .map(one => one.tagName)"""


@pytest.fixture
def report(run_folder, tmp_path):
    explorer = open_explorer(run_folder)
    explorer.act("name", {"group": 0, "name": "a long name " * 12})
    explorer.act("name", {"group": 1, "name": "x" * 180})
    explorer.store.close()
    return write_report(run_folder, tmp_path / "report.html")


@pytest.fixture
def demo(tmp_path):
    """The page of a demo, with pictures of one colour."""
    from PIL import Image

    labels = np.arange(40) // 4
    scores = score_clustering(labels, labels // 2)
    result = SimpleNamespace(scores={"cosine threshold, chosen on the training set": scores,
                                     "hilander": scores})  # fmt: skip
    data = SimpleNamespace(train_ids=labels, train_labels=labels, test_ids=labels,
                           test_labels=labels)  # fmt: skip
    (tmp_path / "plots").mkdir()
    for name in _PICTURES:
        Image.new("RGB", (1400, 900), "grey").save(tmp_path / "plots" / f"{name}.png")
    path = tmp_path / "index.html"
    path.write_text(_page(result, data, list(_PICTURES)), encoding="utf-8")
    return path


@pytest.fixture
def comparison(tmp_path):
    write_comparison_report([GOOD, *BETTER], tmp_path)
    return tmp_path / "report.html"


@pytest.fixture(params=["report", "demo", "comparison"])
def document(request) -> Path:
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_file_has_a_serious_finding(browser, document, theme):
    for device in ({}, PHONE):
        page = browser.new_page(color_scheme=theme, **device)
        page.goto(document.as_uri())
        page.evaluate(RULES.read_text(encoding="utf-8"))
        assert page.evaluate(CHECK) == []
        page.close()


def test_no_file_is_wider_than_a_phone(browser, document):
    context = browser.new_context(**PHONE)
    page = context.new_page()
    page.goto(document.as_uri())
    assert page.evaluate("innerWidth") == PHONE["viewport"]["width"]
    assert page.evaluate(TOO_WIDE) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()

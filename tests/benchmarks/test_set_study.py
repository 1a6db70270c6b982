import json

import pytest

from benchmarks import set_study
from benchmarks.set_study import SetStudy


@pytest.fixture
def study(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- a -->\nold\n<!-- b -->\nafter\n")
    monkeypatch.setattr(set_study, "begin_row", lambda name, seed: {"dataset": name})
    return SetStudy(
        "about", tmp_path / "rows.jsonl", page, ("<!-- a -->", "<!-- b -->"), ("one", "two"),
        measure=lambda name, methods: ({"method": method} for method in methods),
        format_rows=lambda rows: " ".join(f"{row['dataset']}:{row['method']}" for row in rows),
    )  # fmt: skip


def test_rows_are_kept_and_drawn(study, capsys):
    assert study.main(["run", "--dataset", "faces", "flowers", "--methods", "two"]) == 0
    rows = [json.loads(line) for line in study.rows.read_text().splitlines()]
    assert rows == [{"dataset": name, "method": "two"} for name in ("faces", "flowers")]
    assert "two" in capsys.readouterr().out
    assert study.main(["render"]) == 0
    page = study.page.read_text()
    assert "faces:two flowers:two" in page
    assert "old" not in page
    assert page.startswith("before\n")
    assert page.endswith("after\n")


def test_a_method_that_is_not_of_the_study_is_refused(study):
    with pytest.raises(SystemExit):
        study.main(["run", "--methods", "three"])

"""The campaign of faults finds every broken promise, and counts trials.

The campaign itself is `make faults`; `tests/cli/test_cluster_resume.py` kills a run at some steps.
"""

from benchmarks.faults import FORMER, NO_FORMER, count, find_faults, format_rows


def test_each_broken_promise_is_found_in_a_trial():
    good = {
        "kind": "kill", "code": -9, "said": "", "intact": True, "again": 0, "equal": True,
        "debris": [],
    }  # fmt: skip
    assert not find_faults(good)
    changes = [{"intact": False}, {"again": 2}, {"equal": False}, {"debris": ["x"]}, {"code": 0}]
    for change in changes:
        assert find_faults(good | change)
    full = good | {"kind": "full", "code": 2, "said": "hilander: error: the disk is full"}
    assert not find_faults(full)
    assert find_faults(full | {"said": "Traceback"})
    assert find_faults(full | {"code": 1})


def test_the_table_adds_both_starts_and_takes_the_latest_row():
    rows = [
        count("hilander x", before, "kill", faults)
        for before, faults in (
            (NO_FORMER, [["old"]] * 9), (NO_FORMER, [[], []]), (FORMER, [[], ["a"], ["b"]])
        )
    ]  # fmt: skip
    assert format_rows(rows).splitlines()[2:] == ["| `hilander x` | killed at a step | 5 | 2 |"]

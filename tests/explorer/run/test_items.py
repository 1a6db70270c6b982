"""Ids of the items."""

from hilander.explorer.run.run_folder import open_run


def test_exact_ids_are_found_before_ids_that_contain_the_text(run_folder):
    items = open_run(run_folder).items
    assert items.find("item-0012", 5) == [12]
    assert items.find("ITEM-001", 3) == [10, 11, 12]
    assert items.find("nothing", 3) == []

"""Labels at every level are what they were, with one thread and with two."""

import json

import pytest

pytest.importorskip("PIL")

from tests.goldens import partitions

GOLDEN = json.loads(partitions.FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def sets():
    if (here := partitions.describe_machine()) != GOLDEN["of"]:
        pytest.skip(f"the goldens are of {GOLDEN['of']}, here is {here}: last digits may differ")
    with partitions.threads(1):
        return partitions.make_sets()


@pytest.mark.parametrize(("model", "name"), partitions.CASES)
def test_labels_of_every_level_are_held_still(sets, model, name):
    check(sets, model, name, n_threads=1)


@pytest.mark.parametrize(("model", "name"), partitions.TWO_THREADS)
def test_two_threads_give_the_labels_of_one(sets, model, name):
    check(sets, model, name, n_threads=2)


def check(sets, model, name, n_threads):
    with partitions.threads(n_threads):
        found = partitions.cluster(model, sets[name])
    golden = GOLDEN["partitions"][f"{model} on {name}"]
    assert {part: partitions.describe(one) for part, one in found.items()} == golden


def test_a_hash_is_of_the_partition_and_not_of_the_numbers():
    hashed = partitions.hash_partition
    assert hashed([0, 0, 1, 2]) == hashed([7, 7, 3, 0])
    assert hashed([0, 0, 1, 2]) != hashed([0, 1, 1, 2])

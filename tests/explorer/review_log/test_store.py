"""The log of a review on disk."""

import sqlite3
import threading

import numpy as np
import pytest

from hilander.errors import FileFormatError, OutputError
from hilander.explorer.review_log.store import Base, ReviewStore, set_aside

BASE = Base(0, "print", 3, ["a", "b", "c"], np.array([0, 1, 2]))


@pytest.fixture
def store(tmp_path):
    made = ReviewStore(tmp_path / "deep" / "review.sqlite")
    yield made
    made.close()


def test_a_log_is_read_as_it_was_written(store):
    base = store.add_base(BASE)
    store.append(base, "name", {"group": 1, "name": "é<b>"})
    store.append(base, "junk", {"group": 2, "junk": True})
    again = ReviewStore(store.path)
    events = again.events(base)
    again.close()
    assert [event.kind for event in events] == ["name", "junk"]
    assert events[0].payload == {"group": 1, "name": "é<b>"}
    assert [event.kind for event in store.events(base, after=events[0].seq)] == ["junk"]


def test_a_base_keeps_ids_and_clusters(store):
    store.add_base(BASE)
    found = store.latest_base()
    assert found.ids == BASE.ids
    assert found.labels.tolist() == [0, 1, 2]
    assert (found.fingerprint, found.n_clusters) == ("print", 3)


def test_a_repeated_request_is_written_once(store):
    base = store.add_base(BASE)
    first = store.append(base, "name", {"group": 1}, "key-12345")
    second = store.append(base, "name", {"group": 1}, "key-12345")
    assert first.seq == second.seq
    assert len(store.events(base)) == 1


def test_an_action_on_an_outdated_log_is_not_written(store):
    base = store.add_base(BASE)
    first = store.append(base, "name", {}, after=0)
    assert store.append(base, "junk", {}, after=0) is None
    assert store.append(base, "junk", {}, after=first.seq) is not None
    assert len(store.events(base)) == 2


def test_a_base_that_fails_is_rolled_back(store):
    with pytest.raises(TypeError):
        store.add_base(BASE, [("name", {"group": 1}), ("name", {"group": object()})])
    assert store.latest_base() is None
    assert sqlite3.connect(store.path).execute("SELECT COUNT(*) FROM events").fetchone() == (0,)


def test_two_stores_can_write_to_one_file(store):
    base = store.add_base(BASE)
    other = ReviewStore(store.path)

    def write(one, name):
        for number in range(40):
            one.append(base, "name", {"name": f"{name}{number}"})

    threads = [threading.Thread(target=write, args=pair) for pair in ((store, "a"), (other, "b"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()
    assert len({event.seq for event in store.events(base)}) == 80


def test_a_file_that_is_no_review_is_refused(tmp_path):
    path = tmp_path / "review.sqlite"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(FileFormatError, match="not a review database"):
        ReviewStore(path)
    assert path.read_bytes().startswith(b"not a database")


def test_a_review_of_a_newer_version_is_refused(store):
    store._db.execute("PRAGMA user_version = 99")
    with pytest.raises(FileFormatError, match="newer hilander"):
        ReviewStore(store.path)


def test_a_path_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="--state"):
        ReviewStore(tmp_path / "file" / "review.sqlite")


def damage_pages(path, seed):
    content = bytearray(path.read_bytes())
    rng = np.random.default_rng(seed)
    for place in rng.integers(100, len(content), 400):
        content[place] ^= 255
    path.write_bytes(content)


@pytest.mark.parametrize("seed", range(5))
def test_a_damaged_database_is_an_error_and_is_left_as_it_is(store, seed):
    base = store.add_base(BASE)
    for number in range(200):
        store.append(base, "name", {"name": f"n{number}" * 50})
    store.close()
    damage_pages(store.path, seed)
    before = store.path.read_bytes()
    with pytest.raises(FileFormatError, match=r"review\.sqlite .*is damaged"):
        read_all(store.path)
    assert store.path.read_bytes() == before


def read_all(path):
    again = ReviewStore(path)
    base = again.latest_base()
    return again.events(base.id), again.conflicts(base.id)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE events SET payload = x'00'",
        "UPDATE events SET payload = zeroblob(0)",
        "UPDATE bases SET ids = x'1234'",
        "UPDATE bases SET conflicts = '3'",
        "UPDATE bases SET labels = (SELECT ids FROM bases)",
    ],
)
def test_a_row_that_cannot_be_read_is_an_error_of_the_file(store, change):
    store.append(store.add_base(BASE), "name", {"name": "a"})
    store._db.execute(change)
    with pytest.raises(FileFormatError, match="is damaged"):
        read_all(store.path)


def test_a_review_that_is_set_aside_keeps_its_name_and_content(tmp_path):
    path = tmp_path / "review.sqlite"
    path.write_bytes(b"not a database")
    (tmp_path / "review.sqlite-wal").write_bytes(b"log")
    aside = set_aside(path)
    assert aside.name.startswith("review-damaged-")
    assert aside.read_bytes() == b"not a database"
    assert aside.with_name(aside.name + "-wal").read_bytes() == b"log"
    assert not path.exists()

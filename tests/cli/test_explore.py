"""`hilander explore` as it is called."""

import socket

import pytest

from hilander.cli.main import explore, main, make_parser
from hilander.errors import SettingError
from hilander.explorer import opening


@pytest.fixture
def served(monkeypatch):
    """Catch the application in place of serving it."""
    caught = []

    def serve(app, listening, ready):
        caught.append(app)
        ready()
        listening.close()

    monkeypatch.setattr(opening, "serve", serve)
    return caught


def test_it_prints_its_address(run_folder, served, capsys):
    assert main(["explore", str(run_folder), "--port", "0", "--no-browser"]) == 0
    assert "http://127.0.0.1:" in capsys.readouterr().out
    assert len(served) == 1


def test_the_review_is_kept_beside_the_run(run_folder, served):
    main(["explore", str(run_folder), "--port", "0"])
    beside = run_folder.with_name("run.explorer")
    assert (beside / "review.sqlite").is_file()
    assert not (run_folder / "review.sqlite").exists()


def test_a_foreign_folder_is_served_as_a_page_that_says_so(tmp_path, served, capsys, client_of):
    (tmp_path / "photos").mkdir()
    assert main(["explore", str(tmp_path / "photos"), "--port", "0"]) == 0
    assert "expected a run folder" in capsys.readouterr().err
    page = client_of(served[0]).get("/")
    assert page.status_code == 503
    assert "expected a run folder" in page.text
    assert not (tmp_path / "photos.explorer").exists()


@pytest.mark.parametrize(
    "options",
    [
        ["--host", "0.0.0.0"],
        ["--host", "0.0.0.0", "--token", "short"],
        ["--port", "70000"],
        ["--host", "no.such.host.invalid", "--token", "a-long-access-token"],
        ["--labels", "nowhere.csv"],
        ["--reviews", "nowhere"],
    ],
)
def test_options_that_cannot_be_used_end_it(run_folder, served, options, capsys, monkeypatch):
    monkeypatch.delenv(explore.TOKEN_VARIABLE, raising=False)
    code = main(["explore", str(run_folder), "--no-browser", *options])
    if options[0] == "--labels":  # a file that is not there: the page says so
        assert "nowhere.csv" in capsys.readouterr().err
        return
    assert code == 2
    assert served == []


def test_a_missing_folder_ends_it(tmp_path, served):
    assert main(["explore", str(tmp_path / "nowhere")]) == 2
    assert served == []


def test_a_taken_port_is_told_or_another_is_found():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SettingError, match="--port"):
            opening.bind("127.0.0.1", port, exact=True)
        with opening.bind("127.0.0.1", port, exact=False) as other:
            assert other.getsockname()[1] != port


def test_loopback_is_the_default():
    args = make_parser().parse_args(["explore", "run"])
    assert args.host == "127.0.0.1"
    assert args.token is None


def test_labels_and_another_run_are_taken(run_folder, make_run, served, tmp_path, client_of):
    other = make_run("other", seed=0, p_tau=0.8)
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label\n" + "".join(f"item-{i:04d},x{i % 5}\n" for i in range(252)))
    assert main(["explore", str(run_folder), "--port", "0", "--labels", str(labels),
                 "--compare", str(other)]) == 0  # fmt: skip
    client = client_of(served[0])
    told = client.get("/api/overview").json()
    assert told["n_identities"] == 5
    assert "run:other" in [one["key"] for one in told["compare_with"]]
    assert client.get("/api/compare?key=run:other").json()["n_shared"] == 252

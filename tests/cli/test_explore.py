"""The command `hilander explore`."""

import pytest

from hilander.cli.main import explore, main, make_parser
from hilander.explorer.api import listening as listening_module
from tests.explorer.serving import Client
from tests.explorer.small_runs import N_POINTS, write_run

pytest.importorskip("fastapi", reason="the explorer's extra is not installed: hilander[explore]")


@pytest.fixture
def run_folder(tmp_path):
    return write_run(tmp_path / "run")


@pytest.fixture
def served(monkeypatch):
    """The applications that the command would have served."""
    caught = []

    def serve(app, listening, ready, stopping):
        caught.append(app)
        ready()
        stopping()
        listening.close()

    monkeypatch.setattr(listening_module, "serve", serve)
    return caught


def test_the_command_prints_its_address(run_folder, served, capsys):
    assert main(["explore", str(run_folder), "--port", "0", "--no-browser"]) == 0
    assert "http://127.0.0.1:" in capsys.readouterr().out
    assert len(served) == 1


def test_the_review_is_kept_beside_the_run(run_folder, served):
    main(["explore", str(run_folder), "--port", "0"])
    beside = run_folder.with_name("run.explorer")
    assert (beside / "review.sqlite").is_file()
    assert not (run_folder / "review.sqlite").exists()


def test_a_folder_that_is_no_run_is_served_as_a_page_with_the_reason(tmp_path, served, capsys):
    (tmp_path / "photos").mkdir()
    assert main(["explore", str(tmp_path / "photos"), "--port", "0"]) == 0
    assert "expected a run folder" in capsys.readouterr().err
    page = Client(served[0]).get("/")
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
def test_options_that_cannot_be_used_end_the_command(
    run_folder, served, options, capsys, monkeypatch
):
    monkeypatch.delenv(explore.TOKEN_VARIABLE, raising=False)
    code = main(["explore", str(run_folder), "--no-browser", *options])
    if options[0] == "--labels":  # a missing file is reported on the page and in the terminal
        assert "nowhere.csv" in capsys.readouterr().err
        return
    assert code == 2
    assert served == []


def test_a_missing_folder_ends_the_command(tmp_path, served):
    assert main(["explore", str(tmp_path / "nowhere")]) == 2
    assert served == []


def test_loopback_is_the_default():
    args = make_parser().parse_args(["explore", "run"])
    assert args.host == "127.0.0.1"
    assert args.token is None


def test_labels_and_another_run_are_read(run_folder, served, tmp_path):
    other = write_run(tmp_path / "other", p_tau=0.8)
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label\n" + "".join(f"item-{i:04d},x{i % 5}\n" for i in range(N_POINTS)))
    assert main(["explore", str(run_folder), "--port", "0", "--labels", str(labels),
                 "--compare", str(other)]) == 0  # fmt: skip
    client = Client(served[0])
    overview = client.get("/api/overview").json()
    assert overview["n_identities"] == 5
    assert "run:other" in [one["key"] for one in overview["compare_with"]]
    assert client.get("/api/compare?key=run:other").json()["n_shared"] == N_POINTS

"""Option names and values of version 0.1 still work, with a warning, and --help hides them."""

import json
from argparse import Namespace

import numpy as np
import pytest

from hilander.cli.main import main, make_parser
from hilander.cli.old_names import rename_old_names
from hilander.cli.train_options import make_model
from hilander.synthetic.identities import make_identities

OLD_WORDS = ("adviser", "box", "nothing")


def renamed(**values):
    args = Namespace(**values)
    rename_old_names(args)
    return vars(args)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("start", "box", "pretrained"),
        ("start", "nothing", "none"),
        ("prior", "box", "pretrained"),
        ("prior", "nothing", "none"),
        ("model", "box", "pretrained"),
        ("path", "box", "pretrained"),
    ],
)
def test_an_old_value_becomes_the_new_one_with_a_warning(name, old, new):
    with pytest.warns(FutureWarning, match=f"{old}` is now `.* {new}`; .* removed in version 0.3"):
        assert renamed(**{name: old}) == {name: new}


def test_adviser_becomes_prior_with_a_warning():
    with pytest.warns(FutureWarning, match="`--adviser box` is now `--prior pretrained`"):
        assert renamed(adviser="box", prior=None)["prior"] == "pretrained"


def test_names_of_today_are_left_as_they_are():
    values = {"start": "none", "prior": None, "adviser": None, "model": "pretrained", "path": "x"}
    assert renamed(**values) == values


def test_a_folder_with_an_old_name_is_that_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "box").mkdir()
    assert renamed(model="box") == {"model": "box"}


def test_help_does_not_show_the_old_names():
    for action in make_parser()._subparsers._group_actions[0].choices.values():
        words = action.format_help().replace("(", " ").replace(",", " ").split()
        assert not set(words) & {*OLD_WORDS, "--adviser"}


def test_train_accepts_the_old_names():
    options = ["--start", "nothing", "--adviser", "nothing"]
    args = make_parser().parse_args(["train", "train.npz", "-o", "model", *options])
    with pytest.warns(FutureWarning) as caught:
        rename_old_names(args)
    assert sorted(str(one.message).partition(";")[0] for one in caught) == [
        "`--adviser nothing` is now `--prior none`",
        "`--start nothing` is now `--start none`",
    ]
    model = make_model(args)
    assert (model.start, model.prior) == ("none", "none")


@pytest.mark.filterwarnings("default")
def test_cluster_and_info_accept_the_old_name_of_the_pretrained_model(tmp_path, capsys):
    np.save(tmp_path / "points.npy", make_identities(n_identities=5, size=6, dim=16, seed=0)[0])
    assert main(["cluster", f"{tmp_path}/points.npy", "-m", "box", "-o", f"{tmp_path}/run"]) == 0
    assert "`--model box` is now `--model pretrained`" in capsys.readouterr().err
    details = json.loads((tmp_path / "run" / "run.json").read_text())
    assert details["settings"]["model"] == "pretrained"
    assert main(["info", "box", "--json"]) == 0
    printed = capsys.readouterr()
    assert "`hilander info box` is now `hilander info pretrained`" in printed.err
    assert json.loads(printed.out)["kind"] == "model"

"""Names of parameters and values of version 0.1, which still work with a warning."""

import pytest
from sklearn.base import clone

from hilander import HiLander
from hilander.errors import SettingError
from hilander.linkage.evidence.training import EvidenceLearning
from hilander.linkage.storage import PRETRAINED
from hilander.training.methods import find_method
from hilander.training.parameters import NOT_GIVEN, read_prior, rename_value


def make_plan(estimator, X, y):
    return find_method(estimator.method).plan(estimator, X, y)


@pytest.mark.parametrize(
    ("old", "new", "folder"), [("box", "pretrained", str(PRETRAINED)), ("nothing", "none", None)]
)
def test_adviser_is_read_as_prior(labelled, old, new, folder):
    message = f"`adviser` is now called `prior`.*use prior='{new}'"
    with pytest.warns(FutureWarning, match=message) as caught:
        plan = make_plan(HiLander(adviser=old), *labelled)
    assert len(caught) == 1
    assert plan.prior == folder


@pytest.mark.parametrize("name", ["start", "prior"])
@pytest.mark.parametrize(("old", "new"), [("box", "pretrained"), ("nothing", "none")])
def test_old_values_of_start_and_prior_are_read_by_their_present_names(labelled, name, old, new):
    message = f"{name}='{old}' is now called '{new}'.*version 0.3; use {name}='{new}'"
    with pytest.warns(FutureWarning, match=message):
        plan = make_plan(HiLander(**{name: old}), *labelled)
    assert getattr(plan, name) == getattr(make_plan(HiLander(**{name: new}), *labelled), name)


def test_the_published_method_reads_the_old_names_too(labelled):
    with pytest.warns(FutureWarning, match="is now called"):
        make_plan(HiLander(method="paper", adviser="nothing"), *labelled)
    with (
        pytest.warns(FutureWarning, match="is now called"),
        pytest.raises(SettingError, match=r"prior='pretrained' is for method=.evidence."),
    ):
        make_plan(HiLander(method="paper", adviser="box"), *labelled)


def test_a_folder_with_an_old_name_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "box").mkdir()
    assert rename_value("start", "box") == "box"  # warnings are errors


def test_the_old_name_is_a_parameter_that_is_cloned_and_that_is_not_given_by_default():
    assert HiLander().get_params()["adviser"] == NOT_GIVEN
    assert read_prior(HiLander(prior="none")) == "none"
    model = HiLander(adviser="nothing")
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(adviser="box").adviser == "box"


@pytest.mark.usefixtures("small_steps")
def test_a_model_trained_with_the_old_name_is_stored_with_the_present_one(labelled, tmp_path):
    learning = EvidenceLearning(epochs=1, batch_size=64, most_points=60)
    model = HiLander(adviser="nothing", hidden=8, learning=learning, p_tau=0.5, device="cpu")
    with pytest.warns(FutureWarning, match="is now called"):
        model.fit(*labelled)
    again = HiLander.load(model.save(tmp_path / "model"))
    assert (again.prior, again.adviser) == ("none", NOT_GIVEN)

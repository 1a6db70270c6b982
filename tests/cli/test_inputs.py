"""Options that several commands share."""

import argparse
from pathlib import Path

import pytest

from hilander.cli.inputs import (
    DECODERS,
    METHODS,
    check_probability,
    find_model,
    none_if_auto,
    number_or_auto,
    whole,
)
from hilander.errors import SettingError
from hilander.hierarchy.decoding.decode import DECODERS as KNOWN_DECODERS
from hilander.linkage.storage import PRETRAINED
from hilander.training.methods import METHODS as KNOWN_METHODS


def test_the_options_offer_all_decoders_and_methods():
    assert DECODERS == KNOWN_DECODERS
    assert tuple(KNOWN_METHODS) == METHODS


@pytest.mark.parametrize("text", ["0", "-3"])
def test_a_whole_number_below_1_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="whole number of 1 or more"):
        whole(text)


def test_numbers_and_auto_are_converted():
    assert (number_or_auto("0.5"), number_or_auto("auto")) == (0.5, "auto")
    with pytest.raises(argparse.ArgumentTypeError, match="neither a number nor auto"):
        number_or_auto("often")
    assert (none_if_auto("auto"), none_if_auto("folder")) == (None, "folder")


def test_a_number_outside_0_to_1_is_not_a_probability():
    check_probability("--p-tau", 1.0)
    check_probability("--p-tau", None)
    with pytest.raises(SettingError, match=r"--p-tau 1\.5 is not a probability; use 0 to 1"):
        check_probability("--p-tau", 1.5)


def test_pretrained_is_the_model_of_the_package_unless_a_folder_has_that_name(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert find_model("pretrained") == PRETRAINED
    assert find_model("mine") == Path("mine")
    (tmp_path / "pretrained").mkdir()
    assert find_model("pretrained") == Path("pretrained")

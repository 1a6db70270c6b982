import json

import numpy as np
import pytest

from hilander.errors import ModelError, SettingError
from hilander.linkage.paper.settings import NetworkSettings, check_choice


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"features": "averge"}, "features='averge' is not known; did you mean 'average'"),
        ({"encoder": "gat"}, "encoder='gat' is not known; use one of attention, convolution"),
        ({"dim": 0}, "dim=0 must be a whole number >= 1"),
        ({"hidden": 1}, "hidden=1 must be a whole number >= 2"),
        ({"hidden": 8.0}, "hidden=8.0 must be a whole number >= 2"),
        ({"layers": 0}, "layers=0"),
        ({"heads": -1}, "heads=-1"),
        ({"dropout": 1.0}, r"dropout=1.0 must be in \[0, 1\)"),
        ({"dropout": "much"}, "dropout='much'"),
    ],
)
def test_an_invalid_setting_is_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        NetworkSettings(**{"dim": 8, **settings})


@pytest.mark.parametrize(("features", "width"), [("identity", 8), ("average", 8), ("concat", 16)])
def test_both_features_concatenated_are_twice_as_wide(features, width):
    assert NetworkSettings(8, features).input_width == width


def test_from_the_third_layer_on_the_encoder_has_the_width_of_the_head():
    settings = NetworkSettings(8, "concat", hidden=20, layers=4)
    assert settings.layer_widths == [(16, 20), (20, 20), (20, 10), (10, 10)]


def test_settings_are_equal_after_json():
    settings = NetworkSettings(np.int64(8), "average", "convolution", 12, 2, 3, 0.1)
    assert NetworkSettings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


@pytest.mark.parametrize("change", [{"heads": None}, {"colour": 1}])
def test_settings_of_another_version_are_refused(change):
    values = NetworkSettings(8).to_dict()
    for key, value in change.items():
        values.pop(key) if value is None else values.update({key: value})
    with pytest.raises(ModelError, match="differ from this version's"):
        NetworkSettings.from_dict(values)


def test_a_known_choice_passes():
    assert check_choice("encoder", "attention", ("attention",)) is None

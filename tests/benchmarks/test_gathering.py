import pytest
import torch

from benchmarks.gathering import gather_members
from hilander.linkage.evidence.network import EvidenceNetwork, EvidenceSettings

CHOICE = ((0, 1), (1, 0), (1, 2), (2, 2))


def make_networks(settings):
    """Networks of random weights; each classifier has its own scaling."""
    torch.manual_seed(0)
    networks = [EvidenceNetwork(settings).eval() for _ in range(3)]
    parts = [part for one in networks for part in (one, one.small_set) if part is not None]
    for part in parts:
        for classifier in part.classifiers():
            width = len(classifier.centre)
            classifier.set_scaling(torch.randn(width) / 4, 0.5 + torch.rand(width))
    return networks


@pytest.mark.parametrize("stage", [0, 1])
@pytest.mark.parametrize("small_set", [False, True])
def test_gathered_members_have_the_logits_of_their_own_networks(stage, small_set):
    shape = EvidenceSettings(hidden=8, members=3, small_set_points=100)
    networks = make_networks(shape)
    gathered = gather_members(networks, CHOICE)
    assert gathered.settings.members == len(CHOICE)

    def classifier_of(network):
        part = network.for_size(50 if small_set else 500)
        assert (part is network.small_set) is small_set
        return part.classifiers()[stage]

    classifier = classifier_of(gathered)
    features = torch.randn(40, len(classifier.centre)) / 2
    with torch.inference_mode():
        sources = [classifier_of(network).member_logits(features) for network in networks]
        expected = torch.stack([sources[number][member] for number, member in CHOICE])
        found = classifier.member_logits(features)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        mean = expected.mean(dim=0)
        torch.testing.assert_close(classifier(features), mean, atol=1e-5, rtol=1e-5)


def test_networks_without_a_part_for_small_sets_are_gathered_without():
    networks = make_networks(EvidenceSettings(hidden=8, members=3))
    assert gather_members(networks, CHOICE).small_set is None


def test_gathering_does_not_change_the_networks():
    networks = make_networks(EvidenceSettings(hidden=8, members=3))
    before = [{k: v.clone() for k, v in one.state_dict().items()} for one in networks]
    gather_members(networks, CHOICE)
    for one, old in zip(networks, before, strict=True):
        for key, value in one.state_dict().items():
            torch.testing.assert_close(value, old[key])

import pytest
import torch

from benchmarks.gathering import gather_members
from hilander.linkage.evidence.network import EvidenceNetwork, EvidenceSettings

HAND = ((0, 1), (1, 0), (1, 2), (2, 2))


def make_networks(settings):
    """Networks of chance weights, each with standards of its own in each look."""
    torch.manual_seed(0)
    networks = [EvidenceNetwork(settings).eval() for _ in range(3)]
    for network in networks:
        for one in [network] + ([network.few] if network.few is not None else []):
            for super_nodes in (False, True):
                for look in one.classifiers(super_nodes=super_nodes):
                    width = len(look.centre)
                    look.set_scaling(torch.randn(width) / 4, 0.5 + torch.rand(width))
    return networks


@pytest.mark.parametrize("super_nodes", [False, True])
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("few", [False, True])
def test_gathered_members_say_what_they_said_in_their_own_networks(super_nodes, number, few):
    shape = EvidenceSettings(hidden=8, members=3, small_set_points=100, set_context=True)
    networks = make_networks(shape)
    gathered = gather_members(networks, HAND)
    assert gathered.settings.members == len(HAND)

    def look_of(network):
        part = network.suited_to(50 if few else 500)
        assert (part is network.few) is few
        return part.classifiers(super_nodes=super_nodes)[number]

    look = look_of(gathered)
    evidence = torch.randn(40, len(look.centre)) / 2
    with torch.inference_mode():
        theirs = [look_of(network).member_logits(evidence) for network in networks]
        expected = torch.stack([theirs[at][member] for at, member in HAND])
        torch.testing.assert_close(look.member_logits(evidence), expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(look(evidence), expected.mean(dim=0), atol=1e-5, rtol=1e-5)


def test_networks_without_one_for_few_points_are_gathered_without():
    networks = make_networks(EvidenceSettings(hidden=8, members=3))
    assert gather_members(networks, HAND).few is None


def test_gathering_leaves_the_networks_as_they_were():
    networks = make_networks(EvidenceSettings(hidden=8, members=3))
    before = [{k: v.clone() for k, v in one.state_dict().items()} for one in networks]
    gather_members(networks, HAND)
    for one, old in zip(networks, before, strict=True):
        for key, value in one.state_dict().items():
            torch.testing.assert_close(value, old[key])

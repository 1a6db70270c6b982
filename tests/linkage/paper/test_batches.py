import numpy as np
import pytest
import torch

from hilander.linkage.paper.batches import gather_neighbourhood
from hilander.linkage.paper.lander import Lander
from hilander.linkage.paper.settings import NetworkSettings


def tensors(small_level):
    graph, nodes, _ = small_level
    x = torch.from_numpy(np.concatenate([nodes.identity, nodes.average], axis=1))
    return x, torch.from_numpy(graph.neighbours), torch.from_numpy(graph.affinity)


@pytest.mark.parametrize("encoder", ["attention", "convolution"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_batch_has_the_logits_of_the_whole_graph(small_level, encoder, layers):
    torch.manual_seed(0)
    network = Lander(NetworkSettings(6, "concat", encoder, 12, layers, heads=2)).eval()
    x, neighbours, affinity = tensors(small_level)
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(x)))
    with torch.no_grad():
        whole = network(x, gather_neighbourhood(neighbours, affinity, torch.arange(len(x)), layers))
        for nodes in torch.split(order, 7):
            part = network(x, gather_neighbourhood(neighbours, affinity, nodes, layers))
            torch.testing.assert_close(part, whole[nodes], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_each_layer_encodes_exactly_what_the_next_one_needs(small_level, layers):
    _, neighbours, affinity = tensors(small_level)
    nodes = torch.tensor([4, 9])
    needed = {4, 9}
    reach = []
    for _ in range(layers):
        needed = needed | {int(j) for i in needed for j in neighbours[i]}
        reach.append(len(needed))
    hops = gather_neighbourhood(neighbours, affinity, nodes, layers).hops
    assert [len(hop.centres) for hop in hops] == reach[::-1]
    assert hops[0].neighbours.shape == (reach[-1], neighbours.shape[1])

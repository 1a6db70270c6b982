import numpy as np
import pytest
import torch

from hilander.linkage.paper.batches import gather_neighbourhood
from hilander.linkage.paper.encoder import (
    GraphAttention,
    GraphConvolution,
    convolution_weights,
    mix_neighbours,
)
from hilander.linkage.paper.lander import Lander, same_probability
from hilander.linkage.paper.settings import NetworkSettings


def leaky(x):
    return x if x > 0 else 0.2 * x


def attention_by_loop(layer, x, neighbours):
    """The formula of the layer's docstring, a node, a head and a neighbour at a time."""
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    of_source, of_centre = (
        layer.attend_source.detach().numpy(),
        layer.attend_centre.detach().numpy(),
    )
    rows = []
    for i, reached in enumerate(neighbours):
        heads = []
        for head in range(layer.heads):
            mapped = x @ weight[head].T
            logits = [
                leaky(of_source[head] @ mapped[j] + of_centre[head] @ mapped[i]) for j in reached
            ]
            alpha = np.exp(logits) / np.exp(logits).sum()
            mixed = sum(a * mapped[j] for a, j in zip(alpha, reached, strict=True))
            heads.append(mixed + bias[head])
        rows.append(np.maximum(np.mean(heads, axis=0), 0))
    return np.array(rows)


def convolution_by_loop(layer, x, neighbours, affinity):
    weight, bias = layer.linear.weight.detach().numpy(), layer.linear.bias.detach().numpy()
    rows = []
    for i, reached in enumerate(neighbours):
        share = np.maximum(affinity[i], 0)
        share = share / share.sum() if share.sum() > 0 else np.full(len(reached), 1 / len(reached))
        mixed = sum(w * x[j] for w, j in zip(share, reached, strict=True))
        rows.append(np.maximum(weight @ np.concatenate([x[i], mixed]) + bias, 0))
    return np.array(rows)


def case(width_in, n_nodes=25, k=4, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_nodes, width_in)).astype(np.float32)
    neighbours = rng.integers(n_nodes, size=(n_nodes, k))
    affinity = rng.uniform(-0.5, 1, size=(n_nodes, k)).astype(np.float32)
    affinity[3] = -0.2  # no positive neighbour at all
    return x, neighbours, affinity


def run(layer, x, neighbours, affinity, centres=None):
    centres = np.arange(len(x)) if centres is None else centres
    with torch.no_grad():
        return layer(
            torch.from_numpy(x),
            torch.from_numpy(centres),
            torch.from_numpy(neighbours[centres]),
            torch.from_numpy(affinity[centres]),
        ).numpy()


# Mixing happens in the narrower width: below, at, and above the output's.
@pytest.mark.parametrize("width_in", [3, 8, 13])
@pytest.mark.parametrize("heads", [1, 2, 3])
def test_attention_is_its_formula(width_in, heads):
    torch.manual_seed(heads)
    layer = GraphAttention(width_in, 8, heads)
    torch.nn.init.normal_(layer.bias)
    x, neighbours, affinity = case(width_in)
    expected = attention_by_loop(layer, x, neighbours)
    np.testing.assert_allclose(run(layer, x, neighbours, affinity), expected, atol=2e-5)
    some = np.array([7, 2, 19])
    np.testing.assert_allclose(run(layer, x, neighbours, affinity, some), expected[some], atol=2e-5)


def test_mixing_before_or_after_the_linear_map_is_the_same():
    torch.manual_seed(0)
    layer = GraphAttention(8, 8, 1)
    x, neighbours, _ = case(8)
    alpha = torch.rand(len(x), 4)
    before = layer._mix_and_map(torch.from_numpy(x), torch.from_numpy(neighbours), alpha, 0)
    layer.width_out = 7  # as if the output were narrower than the input
    after = layer._mix_and_map(torch.from_numpy(x), torch.from_numpy(neighbours), alpha, 0)
    torch.testing.assert_close(before, after, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("width_in", [3, 8, 13])
def test_convolution_is_its_formula(width_in):
    torch.manual_seed(0)
    layer = GraphConvolution(width_in, 8)
    x, neighbours, affinity = case(width_in)
    expected = convolution_by_loop(layer, x, neighbours, affinity)
    np.testing.assert_allclose(run(layer, x, neighbours, affinity), expected, atol=1e-5)


def test_convolution_weights_sum_to_one_and_a_negative_cosine_weighs_nothing():
    affinity = torch.tensor([[0.6, 0.2, -0.9], [-0.1, -0.2, -0.3], [0.0, 0.0, 0.0]])
    expected = torch.tensor([[0.75, 0.25, 0.0], [1 / 3] * 3, [1 / 3] * 3])
    torch.testing.assert_close(convolution_weights(affinity), expected)


def test_mixing_is_a_weighted_sum_of_neighbours():
    x, neighbours, affinity = case(5)
    expected = np.einsum("ik,ikw->iw", affinity, x[neighbours])
    mixed = mix_neighbours(*map(torch.from_numpy, (x, neighbours, affinity)))
    np.testing.assert_allclose(mixed.numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("encoder", ["attention", "convolution"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_whole_network_is_its_formula(encoder, layers):
    torch.manual_seed(layers)
    settings = NetworkSettings(6, "identity", encoder, 10, layers, heads=2)
    network = Lander(settings).eval()
    x, neighbours, affinity = case(6)
    encoded = x
    for layer in network.encoder:
        if encoder == "attention":
            encoded = attention_by_loop(layer, encoded, neighbours)
        else:
            encoded = convolution_by_loop(layer, encoded, neighbours, affinity)
    head = network.linkage
    with torch.no_grad():
        encoded = torch.tensor(encoded, dtype=torch.float32)
        source, centre = head.of_source(encoded), head.of_centre(encoded)
        edges = [[source[j] + centre[i] for j in row] for i, row in enumerate(neighbours)]
        expected = torch.stack([torch.cat([head.classify(e[None]) for e in row]) for row in edges])
        graph = torch.from_numpy(neighbours), torch.from_numpy(affinity)
        batch = gather_neighbourhood(*graph, torch.arange(len(x)), layers)
        logits = network(torch.from_numpy(x), batch)
    assert logits.shape == (25, 4, 2)
    torch.testing.assert_close(logits, expected, atol=1e-4, rtol=1e-4)
    probability = same_probability(logits)
    by_hand = logits[..., 1].exp() / logits.exp().sum(dim=-1)
    torch.testing.assert_close(probability, by_hand)


def test_dropout_acts_in_training_and_not_in_inference():
    network = Lander(NetworkSettings(6, "identity", hidden=10, dropout=0.5))
    x, neighbours, affinity = case(6)
    graph = torch.from_numpy(neighbours), torch.from_numpy(affinity)
    batch = gather_neighbourhood(*graph, torch.arange(len(x)), 1)
    with torch.no_grad():
        one, two = (network.eval()(torch.from_numpy(x), batch) for _ in range(2))
        torch.testing.assert_close(one, two, atol=0, rtol=0)
        one, two = (network.train()(torch.from_numpy(x), batch) for _ in range(2))
    assert not torch.equal(one, two)

"""The networks of the recipes are what they are called, and training goes on where it stopped."""

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

sys.path.append(str(Path(__file__).parents[1] / "recipes" / "gtsrb"))

import train as recipe
from network import NETWORKS, CompactNet

pytestmark = pytest.mark.slow  # trains networks

SHORT = recipe.Preset(cycles=(((1, 32),), ((0.5, 48),)), batch_size=4)


@pytest.mark.parametrize(("name", "n_layers"), [("vgg16", 16), ("resnet50", 50)])
def test_networks_have_as_many_layers_as_their_names_say(name, n_layers):
    network = NETWORKS[name]().eval()
    layers = [m for m in network.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    carried = [
        m for block in network.modules() for m in getattr(block, "carry", nn.Identity()).modules()
    ]
    assert len([m for m in layers if m not in carried]) == n_layers
    with torch.no_grad():
        assert network(torch.zeros(1, 3, 96, 96)).shape == (1, 43)
        assert network(torch.zeros(1, 3, 32, 32)).shape == (1, 43)


def test_the_papers_preset_is_the_papers():
    preset = recipe.PRESETS["paper"]
    assert preset.epochs == [(1.0, 96, 0)] * 90
    assert preset.smoothing == 0
    rates = [preset.pace(0.5, epoch)["lr"] for epoch in range(90)]
    assert rates == pytest.approx([0.1] * 30 + [0.01] * 30 + [0.001] * 30)
    assert preset.pace(0.5, 0)["momentum"] == 0.9


def test_a_cycle_of_the_learning_rate_goes_up_and_then_down_to_nothing():
    rates = [recipe.PRESETS["quick"].pace(n / 100, 0)["lr"] for n in range(101)]
    assert max(rates) == rates[30] == pytest.approx(0.05)
    assert rates[0] == pytest.approx(0.002)
    assert rates[100] < 1e-6
    assert rates[:31] == sorted(rates[:31])
    assert rates[30:] == sorted(rates[30:], reverse=True)


def trained(tmp_path, name, stop_after=None):
    """Train on 16 noise images; stopped after some epochs, if wanted."""
    torch.manual_seed(0)
    network = CompactNet()
    draw = torch.Generator().manual_seed(1)
    images = torch.randint(0, 256, (16, 3, 96, 96), dtype=torch.uint8, generator=draw)
    labels = torch.arange(16) % 3
    checkpoint = recipe.Checkpoint(tmp_path / f"{name}.checkpoint", "compact")
    seen = []
    for epoch, loss in recipe.train(network, images, labels, SHORT, 0, checkpoint):
        seen.append((epoch, loss))
        if epoch == stop_after:
            break
    return network, seen


def test_stopped_and_started_again_it_ends_with_the_same_weights(tmp_path):
    whole, losses = trained(tmp_path, "whole")
    assert [epoch for epoch, _ in losses] == [0, 1]
    trained(tmp_path, "parts", stop_after=0)
    resumed, rest = trained(tmp_path, "parts")
    assert rest == losses[1:]
    for ours, theirs in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_stopped_in_the_middle_of_an_epoch_too(tmp_path, monkeypatch):
    whole, losses = trained(tmp_path, "whole")
    monkeypatch.setattr(recipe, "CHECKPOINT_SECONDS", -1)  # after each step
    calls = []
    augment = recipe.augment

    def cut_short(images, size):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return augment(images, size)

    monkeypatch.setattr(recipe, "augment", cut_short)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, "parts")
    resumed, again = trained(tmp_path, "parts")
    assert len(calls) == 4 + (6 - 3)  # the three steps done are not repeated
    assert again == losses
    for ours, theirs in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(ours, theirs)

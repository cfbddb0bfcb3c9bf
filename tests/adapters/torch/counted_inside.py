"""Count what torch multiplies; run by its own interpreter, see ``inside.py``."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from harness.worker.adapters.torch.products import Products

CONV1 = 4 * 6 * 6 * 8 * 3 * 3 * 3
CONV2 = 4 * 6 * 6 * 8 * 3 * 3 * 8
DENSE = 4 * 5 * 8
PICTURES = torch.ones(4, 3, 12, 12)


def network(skipped=False):
    first = nn.Conv2d(3, 8, 3, stride=2, padding=1)
    last = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))
    second = nn.Identity() if skipped else nn.Conv2d(8, 8, 3, padding=1)
    return nn.Sequential(first, nn.ReLU(), second, last)


def macs(model, pictures=PICTURES, backward=True):
    with Products() as products:
        loss = functional.cross_entropy(model(pictures), torch.zeros(len(pictures)).long())
        if backward:
            loss.backward()
    return products.found.macs


WHOLE = 2 * CONV1 + 3 * CONV2 + 3 * DENSE


def test_a_step_multiplies_three_times_but_for_the_gradient_of_what_is_given():
    assert macs(network()) == WHOLE


def test_half_the_batch_multiplies_half_as_much():
    assert 2 * macs(network(), PICTURES[::2]) == WHOLE


def test_pictures_of_half_the_size_multiply_a_quarter():
    assert 4 * (macs(network(), PICTURES[:, :, ::2, ::2]) - 3 * DENSE) == WHOLE - 3 * DENSE


def test_a_forward_pass_alone_multiplies_a_third():
    assert macs(network(), backward=False) == CONV1 + CONV2 + DENSE


def test_a_layer_that_is_skipped_is_not_counted():
    assert macs(network(skipped=True)) == 2 * CONV1 + 3 * DENSE


def test_volumes_groups_and_transposed_convolutions_count_as_they_are_stated():
    """The gradient of grouped weights is one product a group, not one of all channels."""
    grouped = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1, groups=4), nn.Conv2d(16, 8, 1, groups=2))
    pictures = torch.ones(2, 8, 6, 6)
    stated = 2 * 36 * (16 * 2 * 9 + 8 * 8)

    def both(model, given):
        with Products() as products:
            model(given.requires_grad_()).sum().backward()
        return products.found.macs

    assert both(grouped, pictures) == 3 * stated
    assert both(nn.Conv3d(2, 4, 3, groups=2), torch.ones(1, 2, 4, 4, 4)) == 3 * 8 * 4 * 27
    assert both(nn.ConvTranspose2d(4, 6, 2, stride=2, groups=2), torch.ones(1, 4, 5, 5)) == (
        3 * 25 * 4 * 3 * 4
    )


def test_what_was_compiled_runs_under_the_counter_and_is_counted():
    ran = []

    def backend(graph, examples):
        def run(*given):
            ran.append(1)
            return graph(*given)

        return run

    model = torch.compile(network(), backend=backend)
    model(PICTURES)
    before = len(ran)
    assert macs(model) == WHOLE
    assert len(ran) == before + 1


def test_bfloat16_multiplies_as_often():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert macs(network()) == WHOLE

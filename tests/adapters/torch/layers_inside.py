"""Hold every lowered layer to a reference written with loops, in float64."""

import itertools

import torch

from harness.worker.adapters.torch.lowering.network import Lowered, Sum, operator
from harness.worker.network.layers import (
    LRN,
    AveragePool,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Flatten,
    GlobalAverage,
    LeakyReLU,
    MaxPool,
    Network,
    ReLU,
    Residual,
    Scale,
    Tanh,
)

LAYOUTS = {2: torch.channels_last, 3: torch.channels_last_3d}


def lowered(layers, shape):
    torch.manual_seed(1)
    model = Lowered(Network(shape, layers)).double().train()
    for tensor in itertools.chain(model.parameters(), model.buffers()):
        torch.nn.init.uniform_(tensor, 0.5, 1.5)
    return model


def compare(layers, shape, reference):
    """Compare outputs and gradients, in both layouts; ``reference(model, x)`` is the slow one."""
    spatial = len(shape) - 1
    for layout in {None, LAYOUTS.get(spatial)}:
        model, slow = lowered(layers, shape), lowered(layers, shape)
        if layout is not None:
            model.to(memory_format=layout)
        given = torch.randn(3, *shape, dtype=torch.float64)
        fast_x = given.clone().requires_grad_()
        x = fast_x * 1
        output = model(x if layout is None else x.contiguous(memory_format=layout))
        slow_x = given.clone().requires_grad_()
        expected = reference(slow, slow_x)
        weights = torch.randn_like(expected)
        (output * weights).sum().backward()
        (expected * weights).sum().backward()
        torch.testing.assert_close(output, expected, check_stride=False)
        torch.testing.assert_close(fast_x.grad, slow_x.grad, check_stride=False)
        for fast, one in zip(model.parameters(), slow.parameters(), strict=True):
            torch.testing.assert_close(fast.grad, one.grad, check_stride=False)


def windows(x, kernel, stride):
    """Give every window of an already padded batch, by output position."""
    counts = [(size - kernel) // stride + 1 for size in x.shape[2:]]
    for position in itertools.product(*map(range, counts)):
        cut = tuple(slice(p * stride, p * stride + kernel) for p in position)
        yield counts, x[(slice(None), slice(None), *cut)]


def gathered(values, counts):
    return torch.stack(values, dim=-1).reshape(*values[0].shape, *counts)


def padded(x, pad, value=0.0):
    sizes = [size + sum(pad) for size in x.shape[2:]]
    wide = torch.full((*x.shape[:2], *sizes), value, dtype=x.dtype)
    inner = tuple(slice(pad[0], pad[0] + size) for size in x.shape[2:])
    mask = torch.zeros_like(wide, dtype=torch.bool)
    mask[(slice(None), slice(None), *inner)] = True
    return wide.masked_scatter(mask, x)


def slow_conv(layer):
    def reference(model, x):
        own = operator(model.at[layer.name])
        values, counts = [], None
        groups = layer.groups
        for counts, window in windows(padded(x, layer.pad), layer.kernel, layer.stride):  # noqa: B007
            parts = []
            for group in range(groups):
                inputs = window.chunk(groups, dim=1)[group]
                weight = own.weight.chunk(groups, dim=0)[group]
                parts.append((inputs[:, None] * weight[None]).flatten(2).sum(-1))
            values.append(torch.cat(parts, 1) + (own.bias if layer.bias else 0))
        return gathered(values, counts)

    return reference


def slow_pool(layer, reduce, value=float("-inf")):
    def reference(_, x):
        pad = getattr(layer, "pad", (0, 0))
        overhang = layer.stride - 1 if getattr(layer, "ceil", False) else 0
        wide = padded(x, (pad[0], pad[1] + overhang), value) if any(pad) or overhang else x
        values, counts = [], None
        for counts, window in windows(wide, layer.kernel, layer.stride):  # noqa: B007
            values.append(reduce(window.flatten(2)))
        return gathered(values, counts)

    return reference


def slow_norm(x, norm):
    dims = [d for d in range(x.dim()) if d != 1]
    shape = [1, -1] + [1] * (x.dim() - 2)
    mean = x.mean(dims)
    variance = ((x - mean.view(shape)) ** 2).mean(dims)
    unit = (x - mean.view(shape)) / (variance.view(shape) + norm.eps).sqrt()
    return unit * norm.weight.view(shape) + norm.bias.view(shape)


def test_a_convolution_matches_in_one_two_and_three_dimensions():
    for spatial in (1, 2, 3):
        layer = Conv("c", 4, 3, stride=2, pad=(1, 1))
        compare((layer,), (2, *[5] * spatial), slow_conv(layer))


def test_an_asymmetric_pad_is_zeros_before_and_after():
    for pad in ((0, 1), (2, 1), (3, 4)):
        for spatial in (1, 2, 3):
            layer = Conv("c", 3, 2, stride=2, pad=pad)
            compare((layer,), (2, *[4] * spatial), slow_conv(layer))


def test_a_grouped_convolution_without_bias_matches():
    layer = Conv("c", 6, 3, groups=2, bias=False)
    compare((layer,), (4, 5, 5), slow_conv(layer))


def test_a_dense_layer_sees_channels_first():
    def reference(model, x):
        own = model.at["d"]
        return x.reshape(x.shape[0], -1) @ own.weight.T + own.bias

    compare((Flatten("f"), Dense("d", 5)), (3, 2, 2), reference)


def test_batch_norm_normalises_by_the_batch():
    for shape in ((4,), (4, 5), (4, 3, 3), (4, 2, 2, 2)):
        compare((BatchNorm("n"),), shape, lambda model, x: slow_norm(x, model.at["n"]))


def test_running_statistics_move_by_momentum_with_the_corrected_variance():
    model = lowered((BatchNorm("n", momentum=0.3),), (2, 3, 3))
    norm = model.at["n"]
    mean, variance = norm.running_mean.clone(), norm.running_var.clone()
    x = torch.randn(4, 2, 3, 3, dtype=torch.float64)
    model(x)
    flat = x.transpose(0, 1).reshape(2, -1)
    torch.testing.assert_close(norm.running_mean, 0.7 * mean + 0.3 * flat.mean(1))
    corrected = ((flat - flat.mean(1, keepdim=True)) ** 2).sum(1) / (flat.shape[1] - 1)
    torch.testing.assert_close(norm.running_var, 0.7 * variance + 0.3 * corrected)


def test_a_max_pool_pads_with_minus_infinity():
    for pad in ((0, 0), (1, 1), (0, 1), (2, 2)):
        for spatial in (1, 2, 3):
            layer = MaxPool("p", 3, 2, pad=pad)
            compare((layer,), (2, *[6] * spatial), slow_pool(layer, lambda w: w.max(-1).values))


def test_a_max_pool_rounds_up_where_asked():
    layer = MaxPool("p", 3, 2, ceil=True)
    compare((layer,), (2, 6, 6), slow_pool(layer, lambda w: w.max(-1).values))


def test_an_average_pool_takes_the_mean():
    for spatial in (1, 2, 3):
        layer = AveragePool("p", 2, 2)
        compare((layer,), (2, *[5] * spatial), slow_pool(layer, lambda w: w.mean(-1)))


def test_the_global_average_is_flat():
    for spatial in (1, 2, 3):
        compare((GlobalAverage("g"),), (2, *[3] * spatial), lambda _, x: x.flatten(2).mean(-1))


def test_lrn_sums_squares_over_channels_with_alpha_undivided():
    for beta in (0.75, 0.6):
        for size in (1, 3, 5):

            def reference(_, x, size=size, beta=beta):
                scales = []
                for c in range(x.shape[1]):
                    low = max(0, c - size // 2)
                    near = x[:, low : c + size // 2 + 1]
                    scales.append((2.0 + 0.5 * (near**2).sum(1)) ** -beta)
                return x * torch.stack(scales, 1)

            compare((LRN("l", size, 0.5, beta, 2.0),), (7, 2, 3), reference)


def test_lrn_in_bfloat16_keeps_a_small_alpha():
    model = Lowered(Network((7, 2, 2), (LRN("l", 5, 1e-3, 0.75, 1.0),)))
    x = torch.randn(1, 7, 2, 2).bfloat16()
    expected = model(x.float()).bfloat16()
    torch.testing.assert_close(model(x), expected, rtol=0, atol=0)


def test_pointwise_layers_match():
    cases = {
        ReLU("a"): lambda x: x.clamp(min=0),
        LeakyReLU("a", 0.3): lambda x: torch.where(x > 0, x, 0.3 * x),
        Tanh("a"): lambda x: (x.exp() - (-x).exp()) / (x.exp() + (-x).exp()),
        Scale("a", 1.2): lambda x: 1.2 * x,
    }
    for layer, reference in cases.items():
        compare((layer,), (2, 3, 3), lambda _, x, reference=reference: reference(x))


def test_layers_that_follow_each_other_in_place_keep_their_gradients():
    layers = (
        ReLU("r0"),
        Conv("c1", 4, 1),
        ReLU("r1"),
        ReLU("r2"),
        Tanh("t"),
        LeakyReLU("r3", 0.2),
        MaxPool("p", 2, 1),
        ReLU("r4"),
        Flatten("f"),
        ReLU("r5"),
        Dense("d", 3),
        LeakyReLU("r6", 0.1),
        Scale("s", 2.0),
        ReLU("r7"),
    )

    def reference(model, x):
        y = slow_conv(layers[1])(model, x.relu()).relu().relu().tanh()
        y = torch.where(y > 0, y, 0.2 * y)
        y = slow_pool(layers[6], lambda w: w.max(-1).values)(model, y).relu()
        y = y.reshape(y.shape[0], -1).relu() @ model.at["d"].weight.T + model.at["d"].bias
        return (torch.where(y > 0, y, 0.1 * y) * 2).relu()

    compare(layers, (2, 3, 3), reference)


def test_a_residual_adds_body_and_shortcut_of_the_same_input():
    conv = Conv("c", 2, 1)
    for body, after in (((conv,), lambda y: y), ((conv, ReLU("r")), torch.relu)):
        for shortcut in ((), (Conv("s", 2, 1), BatchNorm("n"))):

            def reference(model, x, shortcut=shortcut, after=after):
                def one(path, y):
                    own = model.at[path]
                    return (
                        torch.einsum("nchw,oc->nohw", y, own.weight[:, :, 0, 0])
                        + (own.bias[:, None, None])
                    )

                side = slow_norm(one("b/s", x), model.at["b/n"]) if shortcut else x
                return (after(one("b/c", x)) + side).relu()

            compare((Residual("b", body, shortcut), ReLU("end")), (2, 3, 3), reference)


def test_the_residual_of_a_resnet_adds_in_place():
    model = lowered((Residual("b", (Conv("c", 2, 1), BatchNorm("n"))),), (2, 3, 3))
    assert isinstance(model.at["b"], Sum)
    assert model.at["b"].is_in_place


def test_dropout_drops_at_its_rate_and_scales_the_rest():
    model = Lowered(Network((100_000,), (Dropout("d", 0.25),))).train()
    y = model(torch.ones(1, 100_000))
    assert set(y.unique().tolist()) == {0.0, torch.tensor(1 / 0.75).item()}
    assert abs(float((y == 0).float().mean()) - 0.25) < 0.01
